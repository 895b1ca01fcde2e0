package differential

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
)

// row is a row of docs/differences.md, with a schedule that shows the difference between the
// policies.
type row struct {
	id    string
	kind  kind
	steps []step
}

// step is a command with the expected results of our policy and of grpc-go's. If theirs is empty,
// both policies must have the result ours. If ours is also empty, both results must be equal.
type step struct {
	command      string
	ours, theirs string
}

func TestRows(t *testing.T) {
	for _, r := range slices.Concat(priorityRows, targetRows) {
		t.Run(r.id, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { r.run(t) })
		})
	}
}

func (r row) run(t *testing.T) {
	ours, theirs := newSides(r.kind)
	defer ours.policy.Close()
	defer theirs.policy.Close()
	differs := false
	for _, s := range r.steps {
		// Each command runs on both sides before the next one, because both sides share a clock.
		gotOurs, gotTheirs := runBoth(ours, theirs, s.command)
		wantOurs, wantTheirs := s.ours, s.theirs
		if wantOurs == "" {
			wantOurs = gotOurs
		}
		if wantTheirs == "" {
			wantTheirs = wantOurs
		}
		if gotOurs != wantOurs {
			t.Errorf("%s\nours:   %s\nwant:   %s", s.command, gotOurs, wantOurs)
		}
		if gotTheirs != wantTheirs {
			t.Errorf("%s\ntheirs: %s\nwant:   %s", s.command, gotTheirs, wantTheirs)
		}
		differs = differs || gotOurs != gotTheirs
	}
	if !differs {
		t.Error("the policies do not differ, so the row is obsolete")
	}
}

// runBoth runs a command on both sides. If the command is a wait, it waits only once.
func runBoth(ours, theirs *side, command string) (ourResult, theirResult string) {
	if len(command) > 5 && command[:5] == "wait " {
		return ours.execute(command), theirs.execute("wait 0s")
	}
	return ours.execute(command), theirs.execute(command)
}

func TestDocumentHasAllRows(t *testing.T) {
	text, err := os.ReadFile("../../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, tested []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([pw]-[a-z-]+)` \\|").FindAllSubmatch(text, -1) {
		documented = append(documented, string(m[1]))
	}
	for _, r := range slices.Concat(priorityRows, targetRows) {
		tested = append(tested, r.id)
	}
	tested = append(tested, testedApart...)
	slices.Sort(documented)
	slices.Sort(tested)
	if !slices.Equal(documented, tested) {
		t.Errorf("docs/differences.md has the rows\n%q, the tests\n%q", documented, tested)
	}
}

var testedApart = []string{"w-shares"}
