package differential

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// generator generates random schedules. Its fields restrict their contents.
type generator struct {
	types      []string // suffixes of children, which select the type of the child policy: "" or ":other"
	rejections bool
}

var (
	names     = rapid.SampledFrom([]string{"a", "b", "c"})
	anyStates = rapid.SampledFrom([]string{connecting, ready, idle, failed, failed})
)

func (d generator) schedule(t *rapid.T) []string {
	schedule := []string{rapid.SampledFrom([]string{d.update(t), "resolver-error", "update-without"}).Draw(t, "first")}
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		schedule = append(schedule, d.step(t))
	}
	return schedule
}

func (d generator) update(t *rapid.T) string {
	n := rapid.SampledFrom([]int{3, 2, 1, 3, 2, 0}).Draw(t, "children")
	words := []string{"update"}
	for _, name := range rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "order")[:n] {
		word := name + rapid.SampledFrom(d.types).Draw(t, "type")
		if rapid.IntRange(0, 3).Draw(t, "ignored") == 0 {
			word += "!"
		}
		words = append(words, word)
	}
	if rapid.Bool().Draw(t, "retain") {
		words = append(words, "retain")
	}
	return strings.Join(words, " ")
}

func (d generator) step(t *rapid.T) string {
	switch n := rapid.IntRange(0, 16).Draw(t, "step"); {
	case n == 16:
		return "resolve-now " + names.Draw(t, "name") + rapid.SampledFrom(d.types).Draw(t, "type")
	case n >= 8:
		return "report " + names.Draw(t, "name") + rapid.SampledFrom(d.types).Draw(t, "type") + " " + anyStates.Draw(t, "state")
	case n >= 6:
		return "wait " + rapid.SampledFrom([]string{"3s", "5s", "10s", "440s", "900s"}).Draw(t, "wait")
	case n >= 4:
		return d.update(t)
	case n == 3:
		return "on-update " + names.Draw(t, "name") + " " + anyStates.Draw(t, "state")
	case n == 2 && d.rejections:
		return rapid.SampledFrom([]string{"refuse ", "accept "}).Draw(t, "refuse") + names.Draw(t, "name")
	default:
		return rapid.SampledFrom([]string{"exit-idle", "resolver-error", "update-without"}).Draw(t, "call")
	}
}

// On random schedules without rejected updates, each policy must agree with its model after every
// step. The published states, their order, the open children, and the method calls that each child
// has received are compared.
func TestRandomPriorities(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		schedule := generator{types: []string{"", ":other"}}.schedule(rt)
		checkPrediction(rt, "ours", schedule, nil, runOurs(t, priorityKind, schedule), false)
		checkPrediction(rt, "theirs", schedule, modelledRows(), runTheirs(t, priorityKind, schedule), false)
	})
}

// On random schedules with rejected updates, gRPC-Go's policy must agree with its model. All
// children have policies of the same type. The states that are published within a step are not
// compared, because gRPC-Go updates children in the order of a map, and chooses a priority again
// after each rejection.
func TestRandomPrioritiesWithRejections(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		schedule := generator{types: []string{""}, rejections: true}.schedule(rt)
		checkPrediction(rt, "theirs", schedule, modelledRows(), runTheirs(t, priorityKind, schedule), true)
	})
}

func checkPrediction(rt *rapid.T, side string, schedule []string, rows map[string]bool, got []stepResult, anyOrder bool) {
	want, tie := predict(rows, schedule)
	if anyOrder || tie {
		want, got = withoutOrder(want), withoutOrder(got)
	}
	if d := firstDifference(schedule, got, want); d != "" {
		rt.Fatalf("%s, %s", side, d)
	}
}

// On random schedules without the differences of docs/differences.md, both weighted_target policies
// must do the same. The states that are published within a step are not compared, because our
// policy publishes only one state if several children report at the same time.
func TestRandomTargets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		schedule := []string{"update a=1"}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			schedule = append(schedule, rapid.OneOf(
				rapid.SampledFrom([]string{"update a=1 b=2", "update b=1 c=3", "update c=2", "update a=1 b=1 c=1", "resolver-error", "exit-idle", "update-without"}),
				rapid.Map(names, func(name string) string { return "resolve-now " + name }),
				rapid.Map(names, func(name string) string { return "report " + name + " READY" }),
				rapid.Map(names, func(name string) string { return "report " + name + " TRANSIENT_FAILURE" }),
			).Draw(rt, "step"))
		}
		ours, theirs := withoutOrder(runOurs(t, targetKind, schedule)), withoutOrder(runTheirs(t, targetKind, schedule))
		if d := firstDifference(schedule, ours, theirs); d != "" {
			rt.Fatal(d)
		}
	})
}
