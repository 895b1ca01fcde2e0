package feed

import (
	"slices"
	"testing"
)

// The rule, sentence by sentence, over every combination of three parts.
func TestProgressFollowsTheRule(t *testing.T) {
	all := []phase{outstanding, failed, answered}
	for i := range 27 * 4 {
		p := progress{
			phases: []phase{all[i%3], all[i/3%3], all[i/9%3]},
			late:   i/27%2 == 1,
			sent:   i/54%2 == 1,
		}
		has := func(phase phase) bool { return slices.Contains(p.phases, phase) }
		var want action
		switch {
		case p.sent && !has(answered):
			continue // an answer stays in use whatever comes after it
		case p.sent:
			want = send
		// "No state is sent until the first part that has not failed has answered, or 10 s
		// have passed."
		case !p.late && p.phases[0] == outstanding,
			!p.late && p.phases[0] == failed && p.phases[1] == outstanding,
			!p.late && p.phases[0] == failed && p.phases[1] == failed && p.phases[2] == outstanding:
			want = wait
		// A state needs an address, and an error something that failed.
		case has(answered):
			want = send
		case has(failed):
			want = report
		}
		if got := p.next(); got != want {
			t.Errorf("%+v: %v, want %v", p, got, want)
		}
	}
}
