package priorityscenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	core "github.com/understudy-lb/understudy/internal/core/priority"
)

type Step struct {
	Text   string
	Script map[string][]Reaction
	Do     func(Target)
}

var names = []string{"a", "b", "c", "d", "e"}

// Steps generates random sequences of updates, reports, pauses and other events. There can even be
// events after Close. If overflow is true, half of the updates set Config.Overflow.
func Steps(overflow bool) *rapid.Generator[[]Step] {
	return rapid.Custom(func(t *rapid.T) []Step {
		n := rapid.SampledFrom([]int{3, 10, 30, 100, 100, 100}).Draw(t, "number") // from a list, because rapid prefers small numbers
		steps := []Step{drawUpdate(t, overflow)}
		for len(steps) < n {
			steps = append(steps, drawStep(t, overflow))
		}
		return steps
	})
}

func drawStep(t *rapid.T, overflow bool) Step {
	switch n := rapid.Uint8().Draw(t, "step") * 37 % 100; { // scrambled, because rapid prefers small numbers
	case n < 50:
		name, report := drawName(t), Report{drawState(t), drawTag(t)}
		return Step{
			Text:   fmt.Sprintf("report %s %v %s", name, report.State, report.Tag),
			Script: drawScript(t),
			Do:     func(target Target) { target.Report(name, report) },
		}
	case n < 80:
		d := rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second, 10 * time.Second, time.Minute, 14 * time.Minute, 15 * time.Minute}).Draw(t, "advance")
		return Step{
			Text:   fmt.Sprintf("advance %v", d),
			Script: drawScript(t),
			Do:     func(target Target) { target.Advance(d) },
		}
	case n < 93:
		return drawUpdate(t, overflow)
	case n < 95:
		return Step{Text: "exit-idle", Do: Target.ExitIdle}
	case n < 97:
		return Step{Text: "resolver-error x", Do: func(target Target) { target.ResolverError(errors.New("x")) }}
	case n < 99:
		name := drawName(t)
		return Step{Text: "re-resolve " + name, Do: func(target Target) { target.Resolve(name) }}
	}
	return Step{Text: "close", Do: Target.Close}
}

func drawName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "a", "b", "b", "c", "c", "d", "e"}).Draw(t, "child")
}

func drawTag(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "tag")
}

func drawState(t *rapid.T) core.State {
	return rapid.SampledFrom([]core.State{core.Idle, core.Connecting, core.Ready, core.TransientFailure}).Draw(t, "state")
}

func drawUpdate(t *rapid.T, overflow bool) Step {
	var u Update
	order := names // usually the same order, so that priorities often survive an update
	if rapid.IntRange(0, 4).Draw(t, "any order") == 4 {
		order = rapid.Permutation(names).Draw(t, "order")
	}
	u.Config.Priorities = order[:rapid.SampledFrom([]int{3, 3, 3, 2, 2, 1, 0, 4, 5}).Draw(t, "priorities")]
	u.Config.Children = order[:rapid.IntRange(len(u.Config.Priorities), len(order)).Draw(t, "children")]
	u.Config.FailoverTimeout = rapid.SampledFrom([]time.Duration{10 * time.Second, 3 * time.Second}).Draw(t, "timeout")
	retentions := rapid.SampledFrom([]time.Duration{15 * time.Minute, 15 * time.Minute, time.Minute, 0})
	u.Config.ChildRetention = retentions.Draw(t, "retention")
	u.Config.RemovedChildRetention = retentions.Draw(t, "removed")
	u.Config.WarmStandby = rapid.SampledFrom([]int{0, 0, 1, 1, 2, 5}).Draw(t, "warm")
	u.Config.Overflow = overflow && rapid.Bool().Draw(t, "overflow")
	u.Config.SourcePriorities = drawGroups(t, len(u.Config.Priorities))
	u.Ignore = order[:rapid.IntRange(0, 2).Draw(t, "ignore")]
	for i := range rapid.IntRange(0, 4).Draw(t, "endpoints") {
		e := Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i)}
		e.Path = rapid.SampledFrom([][]string{nil, {"a"}, {"b", "x"}, {"c"}, {"z"}}).Draw(t, "path")
		u.Endpoints = append(u.Endpoints, e)
	}
	return Step{
		Text:   fmt.Sprintf("update %s %+v", strings.Join(u.Config.Priorities, " "), u),
		Script: drawScript(t),
		Do:     func(target Target) { target.Update(u) },
	}
}

// drawGroups returns the source's priority for each of the policy's, or nil if nothing is split.
func drawGroups(t *rapid.T, priorities int) (sourcePriorities []int) {
	if rapid.Bool().Draw(t, "no groups") {
		return nil
	}
	n := 0
	for range priorities {
		n += rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "next group")
		sourcePriorities = append(sourcePriorities, n)
	}
	return sourcePriorities
}

// drawScript returns what random children do in their next update: they report states, and some
// return an error after that. Several children may start timers at the same time, which Expect
// allows for.
func drawScript(t *rapid.T) map[string][]Reaction {
	script := map[string][]Reaction{}
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 2, 4}).Draw(t, "reactions") {
		name := drawName(t)
		if rapid.IntRange(0, 3).Draw(t, "error") == 3 {
			script[name] = append(script[name], Reaction{Err: errors.New(rapid.SampledFrom([]string{"bad", "worse"}).Draw(t, "text"))})
			continue
		}
		script[name] = append(script[name], Reaction{Report: Report{drawState(t), drawTag(t)}})
	}
	return script
}

// Apply runs the steps and returns the target's actions in each. After each step, simulated time
// advances by a nanosecond so that timers of different steps never fire at the same time.
func Apply(target Target, steps []Step, check func(Step)) [][]string {
	var logs [][]string
	for _, step := range steps {
		target.Script(step.Script)
		step.Do(target)
		target.Advance(1)
		lines := target.Take()
		SortSimultaneous(lines)
		logs = append(logs, lines)
		if check != nil {
			check(step)
		}
	}
	target.Close()
	lines := target.Take()
	SortSimultaneous(lines)
	return append(logs, lines)
}

// Expect returns the model's actions in each step. It stops when two timers have fired at the same
// time, since there are several correct results after that.
func Expect(steps []Step) [][]string {
	oracle, certain := NewOracle(), 0
	want := Apply(oracle, steps, func(Step) {
		if !oracle.Tie() {
			certain++
		}
	})
	if certain < len(steps) {
		return want[:certain]
	}
	return want
}

// Compare describes the first difference between got and want, or returns "" if there is none.
func Compare(steps []Step, got, want [][]string) string {
	for i := range want {
		if slices.Equal(got[i], want[i]) {
			continue
		}
		var text []string
		for j, step := range append(steps, Step{Text: "close at the end"})[:i+1] {
			text = append(text, fmt.Sprintf("%s %v", step.Text, step.Script))
			text = append(text, want[j]...)
		}
		return fmt.Sprintf("%s\n\nbut the policy did:\n%s", strings.Join(text, "\n"), strings.Join(got[i], "\n"))
	}
	return ""
}
