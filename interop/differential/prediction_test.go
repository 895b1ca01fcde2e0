package differential

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// drive drives one policy with a schedule, with a tick after each step, and closes it.
func drive(t *testing.T, k kind, policy, prefix string, schedule []string) []seen {
	var all []seen
	synctest.Test(t, func(*testing.T) {
		s := newSide(k, policy, prefix)
		for _, step := range schedule {
			returned := strings.HasSuffix(s.do(step), "; update fails")
			time.Sleep(tick) //nolint:forbidigo // in a bubble
			synctest.Wait()
			all = append(all, s.see(returned))
		}
		s.published = nil
		s.policy.Close()
		synctest.Wait()
		all = append(all, s.see(false))
	})
	return all
}

func (s *side) see(returned bool) seen {
	last := ""
	if state := s.cc.State(); state.Picker != nil {
		last = state.ConnectivityState.String() + " " + answer(state)
	}
	return seen{s.published, last, returned, s.told()}
}

func driveOurs(t *testing.T, k kind, schedule []string) []seen {
	return drive(t, k, k.ours, "ours", schedule)
}

func driveTheirs(t *testing.T, k kind, schedule []string) []seen {
	return drive(t, k, k.theirs, "theirs", schedule)
}

// firstDifference describes the first step after which got is not as want; "" without
// one.
func firstDifference(schedule []string, got, want []seen) string {
	for i := range want {
		if reflect.DeepEqual(got[i], want[i]) {
			continue
		}
		step := "close"
		if i < len(schedule) {
			step = schedule[i]
		}
		return fmt.Sprintf("after step %d, %q, of\n\t%s\nseen:      %+v\npredicted: %+v",
			i+1, step, strings.Join(schedule, "; "), got[i], want[i])
	}
	return ""
}

// withoutOrder leaves out what was published within a step, but for the last.
func withoutOrder(all []seen) []seen {
	for i := range all {
		all[i].published = nil
	}
	return all
}

// modelRows are the rows that the model has, all of those about priority but the one
// about what is accepted.
func modelRows() map[string]bool {
	rows := map[string]bool{}
	for _, r := range priorityRows {
		rows[r.id] = r.id != "p-config"
	}
	return rows
}

// On a row's schedule ours does as the model does, and theirs as the model with all
// rows; with all but this one it does not.
func TestModelHasTheRows(t *testing.T) {
	for _, r := range priorityRows {
		if !modelRows()[r.id] {
			continue
		}
		t.Run(r.id, func(t *testing.T) {
			var schedule []string
			for _, s := range r.steps {
				if !strings.HasPrefix(s.command, "ask ") && s.command != "published" {
					schedule = append(schedule, s.command)
				}
			}
			without, _ := predict(nil, schedule)
			if d := firstDifference(schedule, driveOurs(t, r.kind, schedule), without); d != "" {
				t.Errorf("ours, %s", d)
			}
			rows := modelRows()
			theirs := driveTheirs(t, r.kind, schedule)
			with, _ := predict(rows, schedule)
			if d := firstDifference(schedule, theirs, with); d != "" {
				t.Errorf("theirs, %s", d)
			}
			delete(rows, r.id)
			if others, _ := predict(rows, schedule); firstDifference(schedule, theirs, others) == "" {
				t.Error("the other rows explain all that differs")
			}
		})
	}
}
