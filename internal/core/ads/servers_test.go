package ads

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// TestServers runs the scenarios in testdata/servers. Each command is an event, its
// output which servers are asked, by their numbers from 0, and which is used:
//
//	servers N [reachability]      how many there are, and whether A95's rule holds
//	lost I, answered I            whether server I can be reached
//	waiting I, nothing I, all I   what it has of what is needed
func TestServers(t *testing.T) {
	datadriven.Walk(t, "testdata/servers", func(t *testing.T, path string) {
		var s *Servers
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			n, err := strconv.Atoi(d.CmdArgs[0].Key)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			switch d.Cmd {
			case "servers":
				s = NewServers(n, len(d.CmdArgs) > 1)
			case "lost", "answered":
				s.Reachable(n, d.Cmd == "answered")
			default:
				s.Sent(n, map[string]Has{"waiting": Waiting, "nothing": Nothing, "all": All}[d.Cmd])
			}
			used := "nobody"
			if s.Used() >= 0 {
				used = fmt.Sprint(s.Used())
			}
			return fmt.Sprintf("asks 0 to %d, uses %s\n", s.Asked()-1, used)
		})
	})
}

// TestServersAgainstTheRules drives a decision at random, and compares it with the
// sentences of A71 and A95, which look at all servers at once.
func TestServersAgainstTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		only := rapid.Bool().Draw(t, "reachability only")
		s := NewServers(rapid.IntRange(1, 4).Draw(t, "servers"), only)
		lost, has := make(map[int]bool), make(map[int]Has)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				checkServers(t, s, only, lost, has)
			},
			"event": func(t *rapid.T) {
				i := rapid.IntRange(0, s.Asked()-1).Draw(t, "server")
				asked, used := s.Asked(), s.Used()
				if rapid.Bool().Draw(t, "reachable or not") {
					lost[i] = rapid.Bool().Draw(t, "lost")
					s.Reachable(i, !lost[i])
				} else {
					has[i] = rapid.SampledFrom([]Has{Waiting, Nothing, All}).Draw(t, "has")
					s.Sent(i, has[i])
				}
				for gone := s.Asked(); gone < asked; gone++ {
					delete(lost, gone)
					delete(has, gone)
				}
				switch now := s.Used(); {
				case used >= 0 && now < 0:
					t.Fatalf("what is in use, of server %d, was given up for nothing", used)
				case used >= 0 && now != used && has[now] != All:
					t.Fatalf("server %d was given up for %d, which has not all", used, now)
				case s.Asked() > asked+1:
					t.Fatalf("two more servers are asked at once: %d after %d", s.Asked(), asked)
				}
			},
		})
	})
}

func checkServers(t *rapid.T, s *Servers, only bool, lost map[int]bool, has map[int]Has) {
	if s.Used() >= s.Asked() || s.Asked() < 1 {
		t.Fatalf("uses %d of %d", s.Used(), s.Asked())
	}
	for i := range s.Asked() {
		if has[i] == All && (!only || !lost[i]) {
			if s.Used() != i || s.Asked() != i+1 {
				t.Fatalf("server %d has all, but %d is used and %d are asked", i, s.Used(), s.Asked())
			}
			return
		}
	}
	for i := range s.Asked() - 1 { // those before the last were passed over
		if has[i] == All && !lost[i] {
			t.Fatalf("server %d is passed over, although it has all", i)
		}
	}
	last := s.Asked() - 1
	if more := last+1 < len(s.states); more && lost[last] && (only || has[last] == Waiting) {
		t.Fatalf("server %d cannot be reached, and the next is not asked", last)
	}
}
