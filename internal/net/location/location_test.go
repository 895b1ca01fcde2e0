package location_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/net/location"
)

// Options must take precedence over the environment, which must take precedence over the source.
func TestPrecedence(t *testing.T) {
	env := map[string]string{"UNDERSTUDY_ZONE": "env-zone", "UNDERSTUDY_REGION": "env-region"}
	source := location.Location{Region: "source-region", Zone: "source-zone", Node: "source-node"}
	for _, test := range []struct {
		given location.Location
		env   map[string]string
		want  location.Location
	}{
		{want: source},
		{env: env, want: location.Location{Region: "env-region", Zone: "env-zone", Node: "source-node"}},
		{location.Location{Zone: "z"}, env, location.Location{Region: "env-region", Zone: "z", Node: "source-node"}},
		{location.Location{Region: "r", Zone: "z", Node: "n"}, env, location.Location{Region: "r", Zone: "z", Node: "n"}},
	} {
		got, notes := location.Of(test.given, func(name string) string { return test.env[name] })
		if got = got.Or(source); got != test.want || notes != nil {
			t.Errorf("%+v, environment %v: %+v, %q; want %+v", test.given, test.env, got, notes, test.want)
		}
	}
}

func TestInvalidEnvironment(t *testing.T) {
	for text, want := range map[string]string{
		"us-east-1a\n":           `UNDERSTUDY_ZONE has no effect: "us-east-1a\n" given, want a name`,
		"\x1b[31ma":              `UNDERSTUDY_ZONE has no effect: "\x1b[31ma" given, want a name`,
		"\xff":                   `UNDERSTUDY_ZONE has no effect: "\xff" given, want a name`,
		strings.Repeat("a", 257): "UNDERSTUDY_ZONE has no effect: ",
	} {
		env := map[string]string{"UNDERSTUDY_ZONE": text, "UNDERSTUDY_NODE": "n"}
		got, notes := location.Of(location.Location{}, func(name string) string { return env[name] })
		if (got != location.Location{Node: "n"}) || len(notes) != 1 || !strings.HasPrefix(notes[0], want) {
			t.Errorf("%q: %+v, %q; want only the node, and %s", text, got, notes, want)
		}
	}
}

func TestSame(t *testing.T) {
	for _, test := range []struct {
		p, other location.Location
		want     []bool // same zone, same region
	}{
		{location.Location{}, location.Location{}, []bool{false, false}},
		{location.Location{Region: "r", Zone: "z", Node: "n"}, location.Location{Region: "r", Zone: "z", Node: "n"}, []bool{true, true}},
		{location.Location{Region: "r", Zone: "z"}, location.Location{Region: "other", Zone: "z"}, []bool{false, false}},
		{location.Location{Zone: "z"}, location.Location{Region: "r", Zone: "z"}, []bool{true, false}},
		{location.Location{Region: "r", Zone: "z"}, location.Location{Zone: "z"}, []bool{true, false}},
		{location.Location{Region: "r", Zone: "z"}, location.Location{Region: "r", Zone: "y"}, []bool{false, true}},
	} {
		if got := []bool{test.p.SameZone(test.other), test.p.SameRegion(test.other)}; !slices.Equal(got, test.want) {
			t.Errorf("%+v and %+v: same zone, region %v, want %v", test.p, test.other, got, test.want)
		}
	}
}

func TestLearned(t *testing.T) {
	var l location.Learned
	if got := l.Location(); got != (location.Location{}) {
		t.Errorf("%+v before Set, want the zero Location", got)
	}
	l.Set(location.Location{Zone: "z"})
	if got := l.Location(); got != (location.Location{Zone: "z"}) {
		t.Errorf("%+v, want the zone z", got)
	}
}
