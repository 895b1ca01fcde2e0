package weightedtarget

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// runner runs the scenarios on the core. The tests of the policy, in the package weightedtarget at
// the root, run the same scenarios on the whole policy.
type runner struct {
	core    Core
	weights map[string]string
}

var stateNames = map[string]State{"READY": Ready, "CONNECTING": Connecting, "IDLE": Idle, "TRANSIENT_FAILURE": TransientFailure}

func (r *runner) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "update":
		weights := map[string]string{}
		for _, arg := range d.CmdArgs {
			weights[arg.Key] = arg.Vals[0]
		}
		r.core.Update(slices.Collect(maps.Keys(weights)), 0)
		r.weights = weights
	case "report":
		r.core.Report(d.CmdArgs[0].Key, stateNames[d.CmdArgs[1].Key])
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return r.describe()
}

func (r *runner) describe() string {
	all := r.core.State()
	if len(r.weights) == 0 {
		return "TRANSIENT_FAILURE no targets\n"
	}
	if all == Connecting {
		return "CONNECTING queue\n"
	}
	var s strings.Builder
	s.WriteString(all.String())
	for _, name := range r.core.In(all) {
		fmt.Fprintf(&s, " %s*%s", name, r.weights[name])
	}
	return s.String() + "\n"
}

func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		r := &runner{}
		datadriven.RunTest(t, path, r.run)
	})
}

// oracle is a simple implementation of gRFC A28, which computes the result from the whole history.
func oracle(history []step) (State, []string) {
	reported, configured, refused := map[string]State{}, map[string]bool{}, map[string]bool{}
	remove := func(name string) {
		delete(reported, name)
		delete(configured, name)
		delete(refused, name)
	}
	for _, s := range history {
		_, exists := reported[s.name]
		switch {
		case s.what == "remove" || s.what == "add":
			if !exists && s.what == "add" {
				reported[s.name] = Connecting
			}
			configured[s.name] = s.what == "add"
			for name := range reported {
				if !configured[name] && !s.retain {
					remove(name)
				}
			}
		case s.what == "expire" && !configured[s.name]:
			remove(s.name)
		case s.what == "refuse" && exists:
			refused[s.name] = true
		case s.what == "report" && exists:
			refused[s.name] = false
			if reported[s.name] != TransientFailure || s.state != Connecting {
				reported[s.name] = s.state
			}
		}
	}
	for _, state := range []State{Ready, Connecting, Idle, TransientFailure} {
		var members []string
		for _, name := range slices.Sorted(maps.Keys(reported)) {
			if configured[name] && (reported[name] == state && !refused[name] || refused[name] && state == TransientFailure) {
				members = append(members, name)
			}
		}
		if len(members) > 0 {
			return state, members
		}
	}
	return TransientFailure, nil
}

type step struct {
	name   string
	what   string
	retain bool
	state  State
}

func TestAgainstTheOracle(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 0))
		var core Core
		var history []step
		configured := map[string]bool{}
		for range 100 {
			s := step{name: string(rune('a' + random.IntN(4))), state: State(random.IntN(4)), retain: random.IntN(3) > 0}
			s.what = []string{"remove", "add", "add", "expire", "refuse", "report", "report", "report", "report"}[random.IntN(9)]
			switch s.what {
			case "remove", "add":
				delete(configured, s.name)
				if s.what == "add" {
					configured[s.name] = true
				}
				retention := time.Duration(0)
				if s.retain {
					retention = time.Minute
				}
				core.Update(slices.Collect(maps.Keys(configured)), retention)
			case "expire":
				core.RetentionEnded(s.name)
			case "refuse":
				core.Refuse(s.name)
			default:
				core.Report(s.name, s.state)
			}
			history = append(history, s)
			want, members := oracle(history)
			if got := core.State(); got != want || !slices.Equal(core.In(got), members) {
				t.Fatalf("seed %d: state %v of %v, want %v of %v, after %+v", seed, got, core.In(got), want, members, history)
			}
		}
	}
}

func TestRetention(t *testing.T) {
	var core Core
	for _, s := range []struct {
		names     string
		retention time.Duration
		want      string
	}{
		{"a b", time.Minute, "create a, update a, create b, update b"},
		{"b", time.Minute, "retain a 1m0s, update b"},
		{"b", time.Hour, "update b"},
		{"a b", time.Hour, "return a, update a, update b"},
		{"", time.Hour, "retain a 1h0m0s, retain b 1h0m0s"},
		{"b", 0, "destroy a, return b, update b"},
	} {
		if got := describe(core.Update(strings.Fields(s.names), s.retention)); got != s.want {
			t.Errorf("update to %q: %s, want %s", s.names, got, s.want)
		}
	}
	if got := core.RetentionEnded("b"); got != nil {
		t.Errorf("RetentionEnded without a retained child: %s", describe(got))
	}
	core.Update(nil, time.Minute)
	if got := describe(core.RetentionEnded("b")); got != "destroy b" || core.Report("b", Ready) {
		t.Errorf("RetentionEnded of a retained child: %s, or a later report counts", got)
	}
}

func describe(actions []Action) string {
	var all []string
	for _, a := range actions {
		s := [...]string{"create", "update", "retain", "return", "destroy"}[a.Kind] + " " + a.Child
		if a.After != 0 {
			s += " " + a.After.String()
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}
