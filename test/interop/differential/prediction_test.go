package differential

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// runSchedule runs a schedule on a policy, waits for a tick after each step, and closes the policy.
// It returns the visible results.
func runSchedule(t *testing.T, k kind, policy, prefix string, schedule []string) []stepResult {
	var all []stepResult
	synctest.Test(t, func(*testing.T) {
		s := newSide(k, policy, prefix)
		for _, step := range schedule {
			returned := strings.HasSuffix(s.execute(step), "; update fails")
			time.Sleep(tick)
			synctest.Wait()
			all = append(all, s.result(returned))
		}
		s.nextStep()
		s.policy.Close()
		synctest.Wait()
		all = append(all, s.result(false))
	})
	return all
}

func (s *side) result(returned bool) stepResult {
	last := ""
	if state := s.cc.State(); state.Picker != nil {
		last = state.ConnectivityState.String() + " " + answers(state)
	}
	return stepResult{s.publishedInStep(), last, returned, s.received(), s.cc.ResolveNows()}
}

func runOurs(t *testing.T, k kind, schedule []string) []stepResult {
	return runSchedule(t, k, k.ours, "ours", schedule)
}

func runTheirs(t *testing.T, k kind, schedule []string) []stepResult {
	return runSchedule(t, k, k.theirs, "theirs", schedule)
}

// firstDifference describes the first step whose results differ, or returns "" if there is none.
func firstDifference(schedule []string, got, want []stepResult) string {
	for i := range want {
		if reflect.DeepEqual(got[i], want[i]) {
			continue
		}
		step := "close"
		if i < len(schedule) {
			step = schedule[i]
		}
		return fmt.Sprintf("after step %d, %q, of\n\t%s\nseen: %+v\nwant: %+v",
			i+1, step, strings.Join(schedule, "; "), got[i], want[i])
	}
	return ""
}

func withoutOrder(all []stepResult) []stepResult {
	for i := range all {
		all[i].published = nil
	}
	return all
}

// modelledRows returns the rows of docs/differences.md that the model implements. The parser, to
// which the row p-config applies, has no model.
func modelledRows() map[string]bool {
	rows := map[string]bool{}
	for _, r := range priorityRows {
		rows[r.id] = r.id != "p-config"
	}
	return rows
}

// On the schedule of a row, our policy must behave like the model without rows, and gRPC-Go's
// policy like the model with all rows. The model with all rows except this one must behave
// differently from gRPC-Go's policy.
func TestModelsImplementRows(t *testing.T) {
	for _, r := range priorityRows {
		if rows := modelledRows(); rows[r.id] {
			t.Run(r.id, func(t *testing.T) { r.isInModel(t, rows) })
		}
	}
}

func (r row) isInModel(t *testing.T, rows map[string]bool) {
	var schedule []string
	for _, s := range r.steps {
		if !strings.HasPrefix(s.command, "ask ") && s.command != "published" {
			schedule = append(schedule, s.command)
		}
	}
	difference := func(got []stepResult, rows map[string]bool) string {
		want, _ := predict(rows, schedule)
		return firstDifference(schedule, got, want)
	}
	if d := difference(runOurs(t, r.kind, schedule), nil); d != "" {
		t.Errorf("ours, %s", d)
	}
	theirs := runTheirs(t, r.kind, schedule)
	if d := difference(theirs, rows); d != "" {
		t.Errorf("theirs, %s", d)
	}
	delete(rows, r.id)
	if difference(theirs, rows) == "" {
		t.Error("the other rows explain all differences")
	}
}
