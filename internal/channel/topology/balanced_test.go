package topology

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/net/location"
)

// describeGroups describes groups and the percentage of calls that each locality gets, as in
// "balanced: r/a 50.00 r/c 50.00; other zones: r/b 100.00".
func describeGroups(groups []group) string {
	var lines []string
	for _, g := range groups {
		line, sum := g.name+":", 0.0
		for _, l := range g.Localities {
			sum += float64(l.Weight)
		}
		for _, l := range g.Localities {
			line += fmt.Sprintf(" %s %.2f", NameOf(&l), 100*float64(l.Weight)/max(sum, 1))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func TestBalanced(t *testing.T) {
	const three = "/a:=1 2 3; /b:=4 5; /c:=6"
	for _, test := range []struct {
		about, zone, callers, answer, want string
	}{
		{"a zone with more than its share", "a", "", three, "balanced: /a 100.00; other zones: /b 66.67 /c 33.33"},
		{"a zone with exactly its share", "b", "", three, "balanced: /b 100.00; other zones: /a 75.00 /c 25.00"},
		{"a zone with less", "c", "", three, "balanced: /a 50.00 /c 50.00; other zones: /b 100.00"},
		{"a zone without endpoints", "d", "", three, "balanced: /a 100.00; other zones: /b 66.67 /c 33.33"},
		{"a zone whose endpoints cannot take calls", "a", "", "/a:=1! 2! 3!; /b:=4 5; /c:=6", "balanced: /b 100.00; other zones: /a 0.00 /c 100.00"},
		{"the vector with callers", "0", "0:2,1:2,2:1,3:1", "/0:=1; /1:=9!; /2:=2 3 4; /3:=5 6 7; /4:=8", "balanced: /0 37.50 /2 24.04 /3 24.04 /4 14.42; other zones: /1 100.00"},
		{"callers in a zone that the source does not name", "d", "a:1,b:1,c:1,d:1", three, "balanced: /a 75.00 /b 25.00; other zones: /c 100.00"},
		{"callers in a zone that the source names", "c", "a:1,b:1,c:1,d:1", three, "balanced: /a 25.00 /b 8.33 /c 66.67"},
		{"weights of the source do not count between zones", "c", "", "/a*9:=1 2 3; /b*1:=4 5; /c*1:=6", "balanced: /a 50.00 /c 50.00; other zones: /b 100.00"},
		{"two regions have a zone of the name, and the client has no region", "a", "", "r/a:=1; s/a:=2; s/b:=3", "balanced: r/a 100.00; other zones: s/a 50.00 s/b 50.00"},
		{"no endpoint can take calls", "a", "", "/a:=1!; /b:=2!", ": /a 0.00 /b 0.00"},
		{"one zone", "a", "", "/a:=1 2", "balanced: /a 100.00"},
		{"no location", "", "", three, ": /a 0.00 /b 0.00 /c 0.00"},
	} {
		n := Near{Prefer: "balance", Place: location.Location{Zone: test.zone}}
		if test.callers != "" {
			var err error
			if n.Callers, err = location.Callers(test.callers); err != nil {
				t.Fatal(err)
			}
		}
		a := nearAnswer(test.answer)
		split, groups := n.split(a)
		if got := describeGroups(groups); got != test.want {
			t.Errorf("%s: %s\nwant %s", test.about, got, test.want)
		}
		if _, err := Check(split); err != nil {
			t.Errorf("%s: %v", test.about, err)
		}
	}
}

// If the clients of all zones balance their calls, each endpoint must get the same load.
func TestBalancedLoadIsEqual(t *testing.T) {
	load := make(map[string]float64)
	for _, zone := range []string{"a", "b", "c"} {
		_, groups := Near{Prefer: "balance", Place: location.Location{Zone: zone}}.split(nearAnswer("/a:=1 2 3; /b:=4 5; /c:=6"))
		sum := 0.0
		for _, l := range groups[0].Localities {
			sum += float64(l.Weight)
		}
		for _, l := range groups[0].Localities {
			for _, e := range l.Endpoints {
				load[e.Addresses[0]] += float64(l.Weight) / sum / float64(len(l.Endpoints)) / 3
			}
		}
	}
	if len(load) != 6 {
		t.Errorf("%d endpoints have calls, want 6", len(load))
	}
	for address, share := range load {
		if math.Abs(share-1./6) > 1e-6 {
			t.Errorf("%s has %v of the calls, want a sixth", address, share)
		}
	}
}
