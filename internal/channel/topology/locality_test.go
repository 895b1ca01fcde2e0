package topology

import (
	"testing"

	"pgregory.net/rapid"
)

func TestLocalityName(t *testing.T) {
	for _, test := range []struct{ region, zone, subZone, want string }{
		{"us-east", "a", "rack1", "us-east/a/rack1"},
		{"us-east", "a", "", "us-east/a"},
		{"us-east", "", "", "us-east"},
		{"us-east", "", "rack1", "us-east//rack1"},
		{"", "a", "", "/a"},
		{"", "", "", "/"},
		{"us/east", "50%", "", "us%2Feast/50%25"},
		{"a\xff", "", "", "a\uFFFD"},
	} {
		if got := LocalityName(test.region, test.zone, test.subZone); got != test.want {
			t.Errorf("LocalityName(%q, %q, %q) = %q, want %q", test.region, test.zone, test.subZone, got, test.want)
		}
	}
}

func TestDifferentLocalitiesHaveDifferentNames(t *testing.T) {
	type fields [3]string
	part := rapid.StringOfN(rapid.SampledFrom([]rune("a/%2F5")), 0, 4, -1)
	draw := rapid.Custom(func(t *rapid.T) fields {
		return fields{part.Draw(t, "region"), part.Draw(t, "zone"), part.Draw(t, "sub_zone")}
	})
	name := func(p fields) string {
		return LocalityName(p[0], p[1], p[2])
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if (name(a) == name(b)) != (a == b) {
			t.Fatalf("%q is %q, %q is %q", a, name(a), b, name(b))
		}
	})
}
