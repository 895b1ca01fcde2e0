package place_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/place"
)

// The options go before the environment, field by field, and that before what a source knows.
func TestTheOrderOfPlaces(t *testing.T) {
	env := map[string]string{"UNDERSTUDY_ZONE": "env-zone", "UNDERSTUDY_REGION": "env-region"}
	source := place.Place{Region: "source-region", Zone: "source-zone", Node: "source-node"}
	for _, test := range []struct {
		given place.Place
		env   map[string]string
		want  place.Place
	}{
		{want: source},
		{env: env, want: place.Place{Region: "env-region", Zone: "env-zone", Node: "source-node"}},
		{place.Place{Zone: "z"}, env, place.Place{Region: "env-region", Zone: "z", Node: "source-node"}},
		{place.Place{Region: "r", Zone: "z", Node: "n"}, env, place.Place{Region: "r", Zone: "z", Node: "n"}},
	} {
		got, notes := place.Of(test.given, func(name string) string { return test.env[name] })
		if got = got.Or(source); got != test.want || notes != nil {
			t.Errorf("%+v, environment %v: %+v, %q; want %+v", test.given, test.env, got, notes, test.want)
		}
	}
}

// A variable that cannot be a name has no effect, is named, and its text steers no terminal.
func TestTheEnvironmentMayHoldAnything(t *testing.T) {
	for text, want := range map[string]string{
		"us-east-1a\n":           `UNDERSTUDY_ZONE has no effect: "us-east-1a\n" given, want a name`,
		"\x1b[31ma":              `UNDERSTUDY_ZONE has no effect: "\x1b[31ma" given, want a name`,
		"\xff":                   `UNDERSTUDY_ZONE has no effect: "\xff" given, want a name`,
		strings.Repeat("a", 257): "UNDERSTUDY_ZONE has no effect: ",
	} {
		env := map[string]string{"UNDERSTUDY_ZONE": text, "UNDERSTUDY_NODE": "n"}
		got, notes := place.Of(place.Place{}, func(name string) string { return env[name] })
		if (got != place.Place{Node: "n"}) || len(notes) != 1 || !strings.HasPrefix(notes[0], want) {
			t.Errorf("%q: %+v, %q; want the node alone, and %s", text, got, notes, want)
		}
	}
}

// What is not known is not near.
func TestWhatIsNear(t *testing.T) {
	for _, test := range []struct {
		p, other place.Place
		want     []bool // same node, zone, region
	}{
		{place.Place{}, place.Place{}, []bool{false, false, false}},
		{place.Place{Region: "r", Zone: "z", Node: "n"}, place.Place{Region: "r", Zone: "z", Node: "n"}, []bool{true, true, true}},
		{place.Place{Region: "r", Zone: "z"}, place.Place{Region: "other", Zone: "z"}, []bool{false, false, false}},
		{place.Place{Zone: "z"}, place.Place{Region: "r", Zone: "z"}, []bool{false, true, false}},
		{place.Place{Region: "r", Zone: "z"}, place.Place{Zone: "z"}, []bool{false, true, false}},
		{place.Place{Region: "r", Zone: "z"}, place.Place{Region: "r", Zone: "y"}, []bool{false, false, true}},
	} {
		if got := []bool{test.p.SameNode(test.other), test.p.SameZone(test.other), test.p.SameRegion(test.other)}; !slices.Equal(got, test.want) {
			t.Errorf("%+v and %+v: same node, zone, region %v, want %v", test.p, test.other, got, test.want)
		}
	}
}

func TestWhatIsLearnt(t *testing.T) {
	var l place.Learned
	if got := l.Place(); got != (place.Place{}) {
		t.Errorf("%+v before it is set", got)
	}
	l.Set(place.Place{Zone: "z"})
	if got := l.Place(); got != (place.Place{Zone: "z"}) {
		t.Errorf("%+v, want the zone z", got)
	}
}
