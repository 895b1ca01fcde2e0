package differential

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Schedules of all kinds but rejections. Both are held to the model, step by step,
// from the first to the last: what is published and in which order, which children
// there are, and what each was told. So the only differences are the model's rows.
func TestRandomPriorities(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		predicted(t, rt, drawSchedule(rt, []string{"", ":other"}, false), false)
	})
}

// With children that reject updates there is one type of policy, and what is
// published within a step is not compared: gRPC-Go's policy updates its children in
// the random order of a map, and chooses again after each that rejects.
func TestRandomPrioritiesWithRejections(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		predicted(t, rt, drawSchedule(rt, []string{""}, true), true)
	})
}

// predicted fails rt if a policy does what the model does not predict.
func predicted(t *testing.T, rt *rapid.T, schedule []string, anyOrder bool) {
	check := func(side string, rows map[string]bool, drive func(*testing.T, kind, []string) []seen) {
		want, tie := predict(rows, schedule)
		got := drive(t, priorities, schedule)
		if anyOrder || tie {
			want, got = withoutOrder(want), withoutOrder(got)
		}
		if d := firstDifference(schedule, got, want); d != "" {
			rt.Fatalf("%s, %s", side, d)
		}
	}
	check("ours", nil, driveOurs)
	check("theirs", modelRows(), driveTheirs)
}

var names = rapid.SampledFrom([]string{"a", "b", "c"})

// drawUpdate draws an update of some of the children, in any order.
func drawUpdate(t *rapid.T, types []string) string {
	n := rapid.SampledFrom([]int{3, 2, 1, 3, 2, 0}).Draw(t, "children")
	words := []string{"update"}
	for _, name := range rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "priorities")[:n] {
		words = append(words, name+rapid.SampledFrom(types).Draw(t, "type"))
	}
	if rapid.Bool().Draw(t, "retain") {
		words = append(words, "retain")
	}
	return strings.Join(words, " ")
}

func drawSchedule(t *rapid.T, types []string, rejections bool) []string {
	schedule := []string{drawUpdate(t, types)}
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		schedule = append(schedule, drawStep(t, types, rejections))
	}
	return schedule
}

func drawStep(t *rapid.T, types []string, rejections bool) string {
	anyState := rapid.SampledFrom([]string{connecting, ready, idle, failed})
	switch n := rapid.IntRange(0, 15).Draw(t, "step"); {
	case n >= 8:
		return "report " + names.Draw(t, "name") + rapid.SampledFrom(types).Draw(t, "type") + " " + anyState.Draw(t, "state")
	case n >= 6:
		return "wait " + rapid.SampledFrom([]string{"3s", "5s", "10s", "440s", "900s"}).Draw(t, "wait")
	case n >= 4:
		return drawUpdate(t, types)
	case n == 3:
		return "on-update " + names.Draw(t, "name") + " " + anyState.Draw(t, "state")
	case n == 2 && rejections:
		return rapid.SampledFrom([]string{"reject ", "accept "}).Draw(t, "reject") + names.Draw(t, "name")
	default:
		return rapid.SampledFrom([]string{"exit-idle", "resolver-error"}).Draw(t, "call")
	}
}
