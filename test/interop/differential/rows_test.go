package differential

import (
	"os"
	"regexp"
	"slices"
	"strings"
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

// step is a command with the expected results of our policy and of grpc-go's. Without them, both
// results must be equal.
type step struct {
	command      string
	ours, theirs string
}

var priorityRows, targetRows = readRows("priority", priorityKind), readRows("weighted_target", targetKind)

// readRows reads the rows in testdata/NAME.txt. A row begins with "# " and its name. The lines of a
// command's results begin with a tab.
func readRows(name string, k kind) (rows []row) {
	text, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		panic(err)
	}
	for section := range strings.SplitSeq("\n"+string(text), "\n# ") {
		lines := strings.Split(strings.TrimSpace(section), "\n")
		r := row{id: lines[0], kind: k}
		for _, line := range lines[1:] {
			whose, result, isResult := strings.Cut(strings.TrimPrefix(line, "\t"), ":")
			if !strings.HasPrefix(line, "\t") || !isResult {
				r.steps = append(r.steps, step{command: line})
				continue
			}
			s := &r.steps[len(r.steps)-1]
			if result = strings.TrimSpace(result); whose != "theirs" {
				s.ours = result
			}
			if whose != "ours" {
				s.theirs = result
			}
		}
		if r.id != "" {
			rows = append(rows, r)
		}
	}
	return rows
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
			wantOurs, wantTheirs = gotOurs, gotOurs
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
	theirCommand := command
	if strings.HasPrefix(command, "wait ") {
		theirCommand = "wait 0s"
	}
	return strings.TrimSpace(ours.execute(command)), strings.TrimSpace(theirs.execute(theirCommand))
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
