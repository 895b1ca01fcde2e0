package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func described(t *testing.T, translator *topology.Translator, a *discovery.Answer) string {
	t.Helper()
	tree, err := translator.Translate(a)
	if err != nil {
		return "error: " + err.Error()
	}
	var lines []string
	for _, e := range tree.Endpoints {
		lines = append(lines, strings.TrimSuffix(e.Addresses[0].Addr, ":1"))
	}
	for _, p := range tree.Priorities {
		if p.Why != "" {
			lines = append(lines, p.Child+": "+p.Why)
		}
	}
	return strings.Join(lines, "; ")
}

func TestUnhealthyEndpointsKeepPriorities(t *testing.T) {
	var translator topology.Translator
	for _, step := range []struct {
		lines []string
		want  string
	}{
		{[]string{"0 us: a b", "1 eu: c"}, "a; b; c"},
		{[]string{"0 us: a! b!", "1 eu: c"}, "c; child0: no endpoint can take calls: 2 unhealthy"},
		{[]string{"0 us: a b!", "1 eu: c"}, "a; c"},
		{[]string{"0 us:", "1 eu: c!"}, "child0: there are no endpoints; child1: no endpoint can take calls: 1 unhealthy"},
		{[]string{"0 us: a", "0 sa: d!"}, "a"},
	} {
		answer := answerOf(t, step.lines...)
		if got := described(t, &translator, answer); got != step.want {
			t.Errorf("%q: %s, want %s", step.lines, got, step.want)
		}
	}
}

// If a locality has no weight, its weight is the sum of the weights of its usable endpoints.
func TestLocalityWeight(t *testing.T) {
	answer := answerOf(t, "0 us weight=0: a*3 b!*4", "0 eu weight=0: c!", "0 sa weight=9: d*2")
	tree, err := new(topology.Translator).Translate(answer)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"us":{"weight":3,`, `"eu":{"weight":1,`, `"sa":{"weight":9,`} {
		if !strings.Contains(lbtest.JSON(join(t, topology.Settings{}, tree).Config()), want) {
			t.Errorf("the configuration has no %s: %s", want, lbtest.JSON(join(t, topology.Settings{}, tree).Config()))
		}
	}
}

// Two endpoints with the same address count as one endpoint. The healthier one is used, or the
// first if they are equally healthy.
func TestDuplicateAddressIsOneEndpoint(t *testing.T) {
	for about, test := range map[string]struct {
		lines []string
		want  string
	}{
		"in a locality":                   {[]string{"0 us: a a b"}, "a; b"},
		"the first is unhealthy":          {[]string{"0 us: a! b a"}, "b; a"},
		"the second is unhealthy":         {[]string{"0 us: a b", "1 eu: a! c"}, "a; b; c"},
		"a lower priority is healthy":     {[]string{"0 us: a! b", "1 eu: a"}, "b; a"},
		"both are unhealthy":              {[]string{"0 us: a! a!", "1 eu: c"}, "c; child0: no endpoint can take calls: 2 unhealthy"},
		"the only endpoint of a priority": {[]string{"0 us: a", "1 eu: a"}, "a; child1: no endpoint can take calls: 1 unknown"},
	} {
		if got := described(t, new(topology.Translator), answerOf(t, test.lines...)); got != test.want {
			t.Errorf("%s: %s, want %s", about, got, test.want)
		}
	}
}

func TestInvalidAnswers(t *testing.T) {
	tooManyDrops := answerOf(t, "0 us: a")
	tooManyDrops.Drops = []discovery.Drop{{Category: "lb", PerMillion: lbconfig.Million + 1}}
	noAddress := answerOf(t, "0 us: a")
	noAddress.Priorities[0].Localities[0].Endpoints[0].Addresses = nil
	for want, answer := range map[string]*discovery.Answer{
		`category "lb" drops 1000001 of a million calls`:                                            tooManyDrops,
		`endpoint 0 of locality "us" in priority 0 has no address`:                                  noAddress,
		`priority 0 has the locality "us" twice`:                                                    answerOf(t, "0 us: a", "0 us: b"),
		`the weights of the localities of priority 1 sum to more than 4294967295`:                   answerOf(t, "0 us: a", "1 us weight=4294967295: b", "1 eu: c"),
		`the weights of the endpoints of locality "us" in priority 0 sum to more than 4294967295`:   answerOf(t, "0 us: a*4294967295 b"),
		`endpoint 0 of locality "us" in priority 0: address "a/b" has "/", which is not allowed in`: answerOf(t, "0 us: a/b"),
	} {
		if got := described(t, new(topology.Translator), answer); !strings.HasPrefix(got, "error: "+want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	unusable := answerOf(t, "0 us: a/b! c!*4294967295", "0 eu: d")
	if got := described(t, new(topology.Translator), unusable); got != "d" {
		t.Errorf("invalid endpoints that cannot take calls: %s, want d", got)
	}
}

// Answers are equal if their identities or their contents are equal.
func TestEqual(t *testing.T) {
	build := func(change func(*discovery.Answer)) *discovery.Answer {
		a := answerOf(t, "0 us: a b!", "1 eu: c")
		change(a)
		return a
	}
	original := build(func(*discovery.Answer) {})
	for about, test := range map[string]struct {
		answer  *discovery.Answer
		isEqual bool
	}{
		"nothing":    {build(func(*discovery.Answer) {}), true},
		"a version":  {build(func(a *discovery.Answer) { a.Version = "8" }), true},
		"a weight":   {build(func(a *discovery.Answer) { a.Priorities[0].Localities[0].Endpoints[0].Weight = 7 }), false},
		"the health": {build(func(a *discovery.Answer) { a.Priorities[0].Localities[0].Endpoints[1].Health = discovery.Draining }), false},
		"hints":      {build(func(a *discovery.Answer) { a.Priorities[1].Localities[0].Endpoints[0].ForZones = []string{"a"} }), false},
		"a zone":     {build(func(a *discovery.Answer) { a.Priorities[1].Localities[0].Zone = "z" }), false},
		"drops":      {build(func(a *discovery.Answer) { a.Drops = []discovery.Drop{{Category: "lb"}} }), false},
		"why":        {build(func(a *discovery.Answer) { a.Why = "x" }), false},
		"notes":      {build(func(a *discovery.Answer) { a.Notes = []string{"x"} }), false},
		"identity":   {build(func(a *discovery.Answer) { a.Identity = "x" }), true},
	} {
		if got := topology.Equal(original, test.answer); got != test.isEqual {
			t.Errorf("Equal after a change of %s = %v, want %v", about, got, test.isEqual)
		}
	}
	answer, other := build(func(a *discovery.Answer) { a.Identity = "x" }), answerOf(t, "0 as: z")
	if other.Identity = "x"; !topology.Equal(answer, other) {
		t.Error("answers with the same identity differ")
	}
}

func BenchmarkEqual(b *testing.B) {
	build := func(identity string) *discovery.Answer {
		l := discovery.Locality{Region: "us"}
		for i := range 10_000 {
			l.Endpoints = append(l.Endpoints, discovery.Endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d:443", i/250, i%250)}})
		}
		return &discovery.Answer{Identity: identity, Priorities: []discovery.Priority{{Localities: []discovery.Locality{l}}}}
	}
	for _, identity := range []string{"", "x"} {
		b.Run("identity="+identity, func(b *testing.B) {
			answer, other := build(identity), build(identity)
			for b.Loop() {
				if !topology.Equal(answer, other) {
					b.Fatal("the answers differ")
				}
			}
		})
	}
}
