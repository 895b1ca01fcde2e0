package weightedroundrobin

import (
	"testing"
	"testing/synctest"
)

// An update that changes nothing for this policy, for example because it changes only another
// locality, must not cause a new picker.
func TestUnchangedUpdateMakesNoPicker(t *testing.T) {
	run(t, func(h *harness) {
		h.update("", "a:1 b:2")
		h.ready("a")
		h.ready("b")
		countStates := func(config, list string) int {
			t.Helper()
			before := len(h.cc.States())
			h.update(config, list)
			synctest.Wait()
			return len(h.cc.States()) - before
		}
		for _, step := range []struct {
			config, list string
			want         int
		}{
			{"", "a:1 b:2", 0},
			{"{}", "a:1 b:2", 0},
			{"", "a:1 b:3", 1},
			{"", "a:1 b:3", 0},
			{"", "b:3 a:1", 1},
			{"", "b:3", 1},
			{"", "b:3", 0},
			{`{"startPoint":"random"}`, "b:3", 1},
		} {
			if got := countStates(step.config, step.list); got != step.want {
				t.Errorf("update to %q with configuration %q made %d states, want %d", step.list, step.config, got, step.want)
			}
		}
	})
}

func TestNothingIsPublishedBeforeFirstUpdate(t *testing.T) {
	run(t, func(h *harness) {
		h.policy.ExitIdle()
		synctest.Wait()
		if n := len(h.cc.States()); n != 0 {
			t.Errorf("published %d states, the last %v", n, h.cc.State().ConnectivityState)
		}
	})
}
