package discovery_test

import (
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/settle"
)

// A preference without a place has no effect, and the log says so once; what the environment
// says wrongly, it says, too. Nobody is told of a place that nobody asked for.
func TestAPreferenceWithoutAPlaceIsLoggedOnce(t *testing.T) {
	const note, wrong = "nobody says where this client runs", "UNDERSTUDY_ZONE has no effect"
	for _, test := range []struct {
		target, zone string
		opts         []given.Option
		note, wrong  int
	}{
		{target: "x:///y?prefer=zone", note: 1},
		{target: "x:///y?prefer=hints&region=r", note: 1},
		{target: "x:///y?prefer=zone", zone: "a\n", note: 1, wrong: 1},
		{target: "x:///y?zone=a", zone: "a\n"},
		{target: "x:///y?prefer=zone", zone: "a"},
		{target: "x:///y?prefer=zone", opts: []given.Option{given.Set("Zone", "a")}},
		{target: "x:///y?prefer=node&region=r"},
		{target: "x:///y?prefer=hints&node=n"},
		{target: "x:///y", opts: []given.Option{given.Set("Prefer", "hints")}, note: 1},
	} {
		t.Setenv("UNDERSTUDY_ZONE", test.zone)
		b, notes, wrongs := one(&scripted{}, test.opts...), logged.Count(note), logged.Count(wrong)
		for range 2 {
			r, err := b.Build(target(test.target), &channel{}, resolver.BuildOptions{})
			if err != nil {
				t.Fatalf("%s: %v", test.target, err)
			}
			r.Close()
		}
		if notes, wrongs = logged.Count(note)-notes, logged.Count(wrong)-wrongs; notes != test.note || wrongs != test.wrong {
			t.Errorf("%s, UNDERSTUDY_ZONE=%q: %d notes without a place, %d of the environment; want %d and %d", test.target, test.zone, notes, wrongs, test.note, test.wrong)
		}
	}
}

// Callers in a zone that the source does not name are no mistake, and the log says so once.
func TestZonesWithCallersThatTheSourceDoesNotName(t *testing.T) {
	const note = "zoneCallers names zones that the source does not, which count as without endpoints: "
	answer := func(zone string) discovery.Answer {
		return discovery.Answer{Priorities: []discovery.Priority{{Localities: []discovery.Locality{{
			Zone: zone, Weight: 1, Endpoints: []discovery.Endpoint{{Addresses: []string{"10.0.0.1:1"}}},
		}}}}}
	}
	source := &scripted{}
	r, err := one(source).Build(target("x:///y?prefer=balance&zone=a&zoneCallers=a:1,c:1,b:1"), &channel{}, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	settle.Wait()
	for _, step := range []struct {
		zone, named string
		times       int
	}{{"a", "b, c", 1}, {"a", "b, c", 0}, {"b", "a, c", 1}} {
		before := logged.Count(note + step.named)
		if err := source.Update(answer(step.zone)); err != nil {
			t.Fatal(err)
		}
		settle.Wait()
		if n := logged.Count(note+step.named) - before; n != step.times {
			t.Errorf("zone %s: %d notes of %s, want %d", step.zone, n, step.named, step.times)
		}
	}
}

// Where no endpoint has a locality nothing can be preferred, and the log says so once.
func TestAPreferenceOfEndpointsWithoutLocalities(t *testing.T) {
	const note = "prefer=zone has no effect on endpoints without localities"
	source, before := &scripted{}, logged.Count(note)
	r, err := one(source).Build(target("x:///y?prefer=zone&zone=a"), &channel{}, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	settle.Wait()
	for _, address := range []string{"10.0.0.1:1", "10.0.0.2:1"} {
		if err := source.Update(discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: address}}}}}); err != nil {
			t.Fatal(err)
		}
		settle.Wait()
	}
	if n := logged.Count(note) - before; n != 1 {
		t.Errorf("the log says %d times that nothing can be preferred, want once", n)
	}
}
