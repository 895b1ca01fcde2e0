package ads

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScenarios runs the scenarios in testdata/conversations. Each command is an event, and its
// output lists the actions that follow:
//
//	watch NAME, unwatch NAME       adds or removes a watcher
//	watch-coming NAME              adds a watcher of a resource that may arrive soon
//	open, close ERROR              opens or closes the stream
//	response VERSION NONCE         one line per resource: NAME BODY, or NAME !ERROR
//	heard                          a response of another type
//	await                          the server responds after it was unreachable
//	stall                          the stream accepts no requests, so each replaces the last one
//	again                          the server is about to respond after it was silent
//	fire NAME                      the resource's newest timer fires
//	fire-old NAME                  the resource's second-newest timer fires, although it was stopped
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/conversations", func(t *testing.T, path string) {
		s := &scenario{subs: New(), timers: make(map[string][]Timer)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			a, err := s.event(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return s.print(a)
		})
	})
}

type scenario struct {
	subs   *Subscriptions
	timers map[string][]Timer
	unsent *Request // set while the stream accepts no requests
}

func (s *scenario) event(d *datadriven.TestData) (Actions, error) {
	var args []string
	for _, a := range d.CmdArgs {
		args = append(args, a.Key)
	}
	rest := strings.Join(args, " ")
	switch d.Cmd {
	case "watch":
		return s.subs.Watch(rest, false), nil
	case "watch-coming":
		return s.subs.Watch(rest, true), nil
	case "unwatch":
		return s.subs.Unwatch(rest), nil
	case "open":
		return s.subs.Opened(), nil
	case "close":
		return s.subs.Closed(errors.New(rest)), nil
	case "response":
		return s.subs.Received(args[0], args[1], resources(d.Input)), nil
	case "heard":
		s.subs.OtherResponse()
		return Actions{}, nil
	case "await":
		return s.subs.RestartTimers(), nil
	case "stall":
		s.unsent = &Request{}
		return Actions{}, nil
	case "again":
		return s.subs.ServerResponds(), nil
	case "fire":
		all := s.timers[rest]
		return s.subs.Expired(all[len(all)-1]), nil
	case "fire-old":
		all := s.timers[rest]
		return s.subs.Expired(all[len(all)-2]), nil
	}
	return Actions{}, fmt.Errorf("unknown command %s", d.Cmd)
}

func resources(input string) []Resource {
	var all []Resource
	for line := range strings.Lines(input) {
		name, body, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "?" {
			name = ""
		}
		r := Resource{Name: name, Body: []byte(body)}
		if text, bad := strings.CutPrefix(body, "!"); bad {
			r.Err = errors.New(text)
		}
		all = append(all, r)
	}
	return all
}

func (s *scenario) print(a Actions) string {
	var b strings.Builder
	for _, t := range a.Stop {
		fmt.Fprintf(&b, "stop timer of %s\n", t.Name)
	}
	for _, t := range a.Start {
		short := ""
		if t.Short {
			short = "short "
		}
		fmt.Fprintf(&b, "start %stimer of %s\n", short, t.Name)
		s.timers[t.Name] = append(s.timers[t.Name], t)
	}
	for _, d := range a.Deliver {
		fmt.Fprintf(&b, "deliver %s: %s\n", d.Name, d.Body)
	}
	for _, f := range a.Fail {
		fmt.Fprintf(&b, "fail %s: %v\n", f.Name, f.Err)
	}
	for _, k := range a.Kept {
		fmt.Fprintf(&b, "keep %s: %v\n", k.Name, k.Err)
	}
	if r := a.Send; r != nil {
		if r = r.Replacing(s.unsent); s.unsent != nil {
			s.unsent = r
		}
		fmt.Fprintf(&b, "send names=%v version=%q nonce=%q", r.Names, r.Version, r.Nonce)
		if r.Reject != "" {
			fmt.Fprintf(&b, " reject: %s", r.Reject)
		}
		if a.Later {
			b.WriteString(" (later)")
		}
		b.WriteString("\n")
	}
	if a.Renew {
		b.WriteString("renew the stream\n")
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}
