package priority

import (
	"flag"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "300")
	goleak.VerifyTestMain(m)
}

// On random events, the policy must do the same as the pseudo-code of gRFC A56. With overflow, it
// publishes other pickers, because shares decide how many calls a priority takes. rapid runs outside
// of the synctest bubbles, because a failure inside one would end the process.
func TestModel(t *testing.T) {
	total := 0
	defer func() { t.Logf("%d steps", total) }()
	rapid.Check(t, func(rt *rapid.T) {
		steps := scenario.Steps(false).Draw(rt, "steps")
		want := scenario.Expect(steps)
		total += len(want)
		var got [][]string
		synctest.Test(t, func(*testing.T) {
			got = scenario.Apply(newRecorder(), steps, nil)
		})
		if diff := scenario.Compare(steps, got, want); diff != "" {
			rt.Fatal(diff)
		}
	})
}
