package ads

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// TestServers runs the scenarios in testdata/servers. Each command is an event. The output contains
// the indexes of the servers to which the client subscribes, and of the server whose resources it
// uses:
//
//	servers N [reachability]      creates N servers, optionally with the rule of gRFC A95
//	lost I, answered I            server I becomes unreachable or reachable
//	waiting I, nothing I, all I   server I has not sent all, has none or has sent all resources
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
				s.Sent(n, map[string]Completeness{"waiting": Waiting, "nothing": HasNone, "all": HasAll}[d.Cmd])
			}
			used := "nobody"
			if s.Used() >= 0 {
				used = fmt.Sprint(s.Used())
			}
			return fmt.Sprintf("asks 0 to %d, uses %s\n", s.SubscribedCount()-1, used)
		})
	})
}

func TestServersAgainstTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reachabilityOnly := rapid.Bool().Draw(t, "reachability only")
		s := NewServers(rapid.IntRange(1, 4).Draw(t, "servers"), reachabilityOnly)
		unreachable, sent := make(map[int]bool), make(map[int]Completeness)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				checkServers(t, s, reachabilityOnly, unreachable, sent)
			},
			"event": func(t *rapid.T) {
				i := rapid.IntRange(0, s.SubscribedCount()-1).Draw(t, "server")
				asked, used := s.SubscribedCount(), s.Used()
				if rapid.Bool().Draw(t, "reachable or not") {
					unreachable[i] = rapid.Bool().Draw(t, "lost")
					s.Reachable(i, !unreachable[i])
				} else {
					sent[i] = rapid.SampledFrom([]Completeness{Waiting, HasNone, HasAll}).Draw(t, "has")
					s.Sent(i, sent[i])
				}
				for removed := s.SubscribedCount(); removed < asked; removed++ {
					delete(unreachable, removed)
					delete(sent, removed)
				}
				switch current := s.Used(); {
				case used >= 0 && current < 0:
					t.Fatalf("server %d was dropped without a replacement", used)
				case used >= 0 && current != used && sent[current] != HasAll:
					t.Fatalf("server %d was replaced by %d, which lacks resources", used, current)
				case s.SubscribedCount() > asked+1:
					t.Fatalf("two servers were added at once: %d after %d", s.SubscribedCount(), asked)
				}
			},
		})
	})
}

func checkServers(t *rapid.T, s *Servers, reachabilityOnly bool, unreachable map[int]bool, sent map[int]Completeness) {
	if s.Used() >= s.SubscribedCount() || s.SubscribedCount() < 1 {
		t.Fatalf("uses %d of %d", s.Used(), s.SubscribedCount())
	}
	for i := range s.SubscribedCount() {
		if sent[i] == HasAll && (!reachabilityOnly || !unreachable[i]) {
			if s.Used() != i || s.SubscribedCount() != i+1 {
				t.Fatalf("server %d has all resources, but %d is used of %d", i, s.Used(), s.SubscribedCount())
			}
			return
		}
	}
	for i := range s.SubscribedCount() - 1 {
		if sent[i] == HasAll && !unreachable[i] {
			t.Fatalf("server %d was skipped, although it has all resources", i)
		}
	}
	last := s.SubscribedCount() - 1
	if hasNext := last+1 < len(s.states); hasNext && unreachable[last] && (reachabilityOnly || sent[last] == Waiting) {
		t.Fatalf("server %d is unreachable, but the next was not added", last)
	}
}
