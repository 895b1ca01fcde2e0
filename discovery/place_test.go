package discovery_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/settle"
)

// Without a location of the client, the option prefer has no effect. This must be logged once,
// together with mistakes in the environment variables. Nothing must be logged if prefer is not set.
func TestPreferWithoutLocationIsLogged(t *testing.T) {
	const note, wrong = "the location of this client is unknown", "UNDERSTUDY_ZONE has no effect"
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
		{target: "x:///y?prefer=zone&region=r"},
		{target: "x:///y?prefer=hints&node=n"},
		{target: "x:///y", opts: []given.Option{given.Set("Prefer", "hints")}, note: 1},
	} {
		t.Setenv("UNDERSTUDY_ZONE", test.zone)
		b, notes, wrongs := newSourceBuilder(&fakeSource{}, test.opts...), logged.Count(note), logged.Count(wrong)
		for range 2 {
			r, err := b.Build(target(test.target), &channel{}, resolver.BuildOptions{})
			if err != nil {
				t.Fatalf("%s: %v", test.target, err)
			}
			r.Close()
		}
		if notes, wrongs = logged.Count(note)-notes, logged.Count(wrong)-wrongs; notes != test.note || wrongs != test.wrong {
			t.Errorf("%s, UNDERSTUDY_ZONE=%q: %d notes about the location, %d about the environment; want %d and %d", test.target, test.zone, notes, wrongs, test.note, test.wrong)
		}
	}
}

// The option prefer has no effect on endpoints without localities. This must be logged once.
func TestPreferWithoutLocalitiesIsLogged(t *testing.T) {
	const note = "prefer=zone has no effect on endpoints without localities"
	source, before := &fakeSource{}, logged.Count(note)
	r, err := newSourceBuilder(source).Build(target("x:///y?prefer=zone&zone=a"), &channel{}, resolver.BuildOptions{})
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
		t.Errorf("the log notes %d times that prefer has no effect, want once", n)
	}
}

// The option prefer needs the zone, region or hints of endpoints. If the endpoints lack them,
// this must be logged once.
func TestPreferWithoutEndpointLocationIsLogged(t *testing.T) {
	for _, test := range []struct {
		prefer   string
		locality discovery.Locality
		lacks    string
	}{
		{"zone", discovery.Locality{}, "zone"},
		{"zone&region=r", discovery.Locality{}, "zone or region"},
		{"zone&region=r", discovery.Locality{Region: "s"}, ""},
		{"zone", discovery.Locality{Region: "r"}, "zone"}, // the client's region is unknown
		{"hints", discovery.Locality{Zone: "z"}, "hints"},
		{"hints", discovery.Locality{Endpoints: []discovery.Endpoint{{ForNodes: []string{"m"}}}}, ""},
	} {
		source := &fakeSource{}
		kind, _, _ := strings.Cut(test.prefer, "&")
		note := "prefer=" + kind + " has no effect: the source gives no " + test.lacks
		before := logged.Count("has no effect: the source gives no ")
		r, err := newSourceBuilder(source).Build(target("x:///y?node=n&zone=a&prefer="+test.prefer), &channel{}, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		settle.Wait()
		named := logged.Count(note)
		for _, address := range []string{"10.0.0.1:1", "10.0.0.2:1"} {
			l := test.locality
			l.Weight = 1
			l.Endpoints = append([]discovery.Endpoint{{Addresses: []string{address}}}, l.Endpoints...)
			for i := range l.Endpoints[1:] {
				l.Endpoints[1+i].Addresses = []string{"10.0.0.9:1"}
			}
			if err := source.Update(discovery.Answer{Priorities: []discovery.Priority{{Localities: []discovery.Locality{l}}}}); err != nil {
				t.Fatal(err)
			}
			settle.Wait()
		}
		r.Close()
		want := 0
		if test.lacks != "" {
			want = 1
		}
		if all, n := logged.Count("has no effect: the source gives no ")-before, logged.Count(note)-named; all != want || want > 0 && n != 1 {
			t.Errorf("prefer=%s of %+v: %d log lines about it, %d with %q; want %d", test.prefer, test.locality, all, n, test.lacks, want)
		}
	}
}
