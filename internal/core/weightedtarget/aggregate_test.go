package weightedtarget

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// runner runs a scenario against the core. The real shell runs the same files, in
// package weightedtarget.
type runner struct {
	children Children
	weights  map[string]string
}

var stateNames = map[string]State{"READY": Ready, "CONNECTING": Connecting, "IDLE": Idle, "TRANSIENT_FAILURE": TransientFailure}

func (r *runner) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "update":
		wanted := map[string]string{}
		for _, arg := range d.CmdArgs {
			wanted[arg.Key] = arg.Vals[0]
		}
		for name := range r.weights {
			if wanted[name] == "" {
				r.children.Remove(name)
			}
		}
		for name := range wanted {
			r.children.Add(name)
		}
		r.weights = wanted
	case "report":
		r.children.Report(d.CmdArgs[0].Key, stateNames[d.CmdArgs[1].Key])
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return r.describe()
}

func (r *runner) describe() string {
	all := r.children.State()
	if r.children.Len() == 0 {
		return "TRANSIENT_FAILURE no targets\n"
	}
	if all == Connecting {
		return "CONNECTING queue\n"
	}
	var s strings.Builder
	s.WriteString(all.String())
	for _, name := range r.children.In(all) {
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

// oracle is what A28 says, as dumb as can be: the whole history, read anew each time.
func oracle(history []step) (State, []string) {
	effective := map[string]State{}
	for _, s := range history {
		switch {
		case s.remove:
			delete(effective, s.name)
		case s.add:
			if _, ok := effective[s.name]; !ok {
				effective[s.name] = Connecting
			}
		default:
			last, ok := effective[s.name]
			if ok && (last != TransientFailure || s.state != Connecting) {
				effective[s.name] = s.state
			}
		}
	}
	for _, state := range []State{Ready, Connecting, Idle, TransientFailure} {
		var in []string
		for _, name := range slices.Sorted(maps.Keys(effective)) {
			if effective[name] == state {
				in = append(in, name)
			}
		}
		if len(in) > 0 {
			return state, in
		}
	}
	return TransientFailure, nil
}

type step struct {
	name        string
	add, remove bool
	state       State
}

func TestAgainstTheOracle(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var children Children
		var history []step
		for range 100 {
			s := step{name: string(rune('a' + random.IntN(4))), state: State(random.IntN(4))}
			switch random.IntN(8) {
			case 0:
				s.remove = true
				children.Remove(s.name)
			case 1, 2:
				s.add = true
				children.Add(s.name)
			default:
				children.Report(s.name, s.state)
			}
			history = append(history, s)
			want, in := oracle(history)
			if got := children.State(); got != want || !slices.Equal(children.In(got), in) {
				t.Fatalf("seed %d: state %v of %v, want %v of %v, after %+v", seed, got, children.In(got), want, in, history)
			}
		}
	}
}
