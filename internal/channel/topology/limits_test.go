package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/location"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// A value at a limit is accepted, and the next one is refused.
func TestAnswersAtLimits(t *testing.T) {
	for want, lines := range map[string][]string{
		"a; b":  {"0 us weight=4294967294: a", "0 eu: b"},
		"c; d":  {"0 us: c*4294967294 d"},
		"error": {"0 us weight=4294967295: a", "0 eu: b"},
	} {
		if got := described(t, new(topology.Translator), answerOf(t, lines...)); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", lines, got, want)
		}
	}
	all := answerOf(t, "0 us: a")
	all.Drops = []discovery.Drop{{Category: "lb", PerMillion: lbconfig.Million}}
	if got := described(t, new(topology.Translator), all); got != "a" {
		t.Errorf("a category that drops all calls: %s, want a", got)
	}
}

func TestLongestHosts(t *testing.T) {
	label := strings.Repeat("a", 63)
	longest := label + "." + label + "." + label + "." + label[:61] // 253 bytes
	for host, valid := range map[string]bool{
		longest: true, longest + ".": true, longest + "a": false, label: true, label + "a": false, "a..b": false, "a.": true,
		"fe80::1%eth0": true, "[::1]": false, "a b": false, "1.example": true, "1024": true, "10.0.0.1:80": false,
	} {
		if _, problem := topology.CanonicalHost(host); (problem == "") != valid {
			t.Errorf("%s (%d bytes): problem %q, valid = %v", host, len(host), problem, valid)
		}
	}
	for address, valid := range map[string]bool{"a:1": true, "a:65535": true, "a:65536": false, "a:0": false, "unix:": false, "unix:x": true} {
		if _, problem := topology.CanonicalAddress(address); (problem == "") != valid {
			t.Errorf("%s: problem %q, valid = %v", address, problem, valid)
		}
	}
}

// The configuration of outlier detection comes from the options or, without one, from the cluster.
func TestChoiceOfOutlierDetection(t *testing.T) {
	cluster, err := topology.ParseOutlierDetection(`{"interval": "7s", "successRateEjection": {}}`)
	if err != nil {
		t.Fatal(err)
	}
	const ours = `"interval":"10s","baseEjectionTime":"30s","maxEjectionTime":"300s","maxEjectionPercent":100,` +
		`"failurePercentageEjection":{"threshold":85,"enforcementPercentage":100,"minimumHosts":1,"requestVolume":10},` +
		`"consecutiveFailuresEjection":{"failures":5,"enforcementPercentage":100},`
	const none = `"interval":"10s","baseEjectionTime":"30s","maxEjectionTime":"300s","maxEjectionPercent":10,`
	const want = `"interval":"7s","baseEjectionTime":"30s","maxEjectionTime":"300s","maxEjectionPercent":10,"successRateEjection":{`
	const bare = `understudy_drop{"childPolicy": [{"understudy_pick_first": {}}]}`
	if _, err := topology.NewPolicies(topology.Settings{EndpointPolicy: bare, OutlierDetection: options.On}); err == nil || !strings.Contains(err.Error(), "understudy_pick_first below understudy_drop") {
		t.Errorf("ejection from a list of one pick_first: %v", err)
	}
	for _, test := range []struct {
		settings topology.Settings
		cluster  *lbconfig.OutlierDetection
		want     string
	}{
		{topology.Settings{}, nil, none},
		{topology.Settings{}, cluster, want},
		{topology.Settings{OutlierDetection: options.On}, cluster, ours},
		{topology.Settings{OutlierDetection: options.On}, nil, ours},
		{topology.Settings{OutlierDetection: options.Off}, cluster, none},
		{topology.Settings{EndpointPolicy: "pick_first", OutlierDetection: options.On}, cluster, none},
		{topology.Settings{EndpointPolicy: bare}, cluster, none},
	} {
		tree, err := new(topology.Translator).Translate(answerOf(t, "0 us: a"))
		if err != nil {
			t.Fatal(err)
		}
		config := lbtest.JSON(join(t, test.settings, tree.With(false, test.cluster)).Config())
		if !strings.Contains(config, `"understudy_outlier_detection":{`+test.want) {
			t.Errorf("%+v: the configuration is\n%s\nwant in it\n%s", test.settings, config, test.want)
		}
	}
	var missing *lbconfig.OutlierDetection
	if topology.OutlierDetectionJSON(missing) != "" || !strings.HasPrefix(topology.OutlierDetectionJSON(cluster), `{"interval":"7s",`) {
		t.Errorf("the JSON of none is %q and of the cluster's %q", topology.OutlierDetectionJSON(missing), topology.OutlierDetectionJSON(cluster))
	}
}

// If a priority was split into near groups, the configuration says which groups belong together.
func TestGroupsOfPriorityBelongTogether(t *testing.T) {
	near := topology.Near{Prefer: "zone", Place: location.Location{Region: "us", Zone: "a"}}
	for want, lines := range map[string][]string{
		`"sourcePriorities":[0,0,1]`:   {"0 us/a: x", "0 us/b: y", "1 us/a: z"},
		`"sourcePriorities":[0,1,1]`:   {"0 us/a: x", "1 us/a: y", "1 us/b: z"},
		`"sourcePriorities":[0,0,1,1]`: {"0 us/a: x", "0 us/b: y", "1 us/b: z", "1 us/a: u"},
	} {
		tree, err := (&topology.Translator{Near: near}).Translate(answerOf(t, lines...))
		if err != nil {
			t.Fatal(err)
		}
		if config := lbtest.JSON(join(t, topology.Settings{}, tree).Config()); !strings.Contains(config, want) {
			t.Errorf("%q: the configuration is %s, want %s in it", lines, config, want)
		}
	}
}

func TestSeedOfSubset(t *testing.T) {
	subset := func(channel uint64, seed int) string {
		tree := join(t, topology.Settings{Subset: 5, ChannelSeed: channel, SubsetSeed: seed}, topology.Plain("p", "", plain(upTo(100)...)))
		var addresses []string
		for _, e := range tree.Endpoints {
			addresses = append(addresses, e.Addresses[0].Addr)
		}
		return strings.Join(addresses, " ")
	}
	if subset(7, 0) == subset(8, 0) {
		t.Error("without a seed, two channels have the same subset")
	}
	if subset(7, 1) != subset(8, 1) || subset(7, 1) == subset(7, 2) {
		t.Error("with a seed, the subset is not that of the seed")
	}
}

// An endpoint keeps its addresses in the next tree, unless they have changed.
func TestTreesShareAddresses(t *testing.T) {
	var translator topology.Translator
	addresses := func(hosts ...string) [][]resolver.Address {
		a := answerOf(t, "0 us: a b")
		a.Priorities[0].Localities[0].Endpoints[0].Addresses = hosts
		tree, err := translator.Translate(a)
		if err != nil {
			t.Fatal(err)
		}
		return [][]resolver.Address{tree.Endpoints[0].Addresses, tree.Endpoints[1].Addresses}
	}
	first, same, comparison := addresses("a:1"), addresses("a:1"), addresses("a:1", "c:1")
	if &first[0][0] != &same[0][0] || &first[1][0] != &same[1][0] {
		t.Error("the second tree has other addresses")
	}
	if len(comparison[0]) != 2 || &first[1][0] != &comparison[1][0] {
		t.Errorf("an endpoint that has got a second address has %v, or the other one has new addresses", comparison[0])
	}
}

// An answer without endpoints is refused, unless it is marked as empty.
func TestEmptyAnswers(t *testing.T) {
	const none = "its answer has no endpoints, and Answer.Empty is not set"
	const noAddresses = "its resolver returned no addresses"
	locality := func(endpoints ...discovery.Endpoint) []discovery.Priority {
		return []discovery.Priority{{Localities: []discovery.Locality{{Endpoints: endpoints}}}}
	}
	for _, test := range []struct {
		answer discovery.Answer
		want   string
	}{
		{discovery.Answer{}, none},
		{discovery.Answer{Priorities: locality()}, none},
		{discovery.Answer{Why: "no slices", Priorities: locality()}, "no slices: " + none},
		{discovery.Answer{Empty: true}, "<nil>"},
		{discovery.Answer{Priorities: locality(discovery.Endpoint{})}, "<nil>"},
		{discovery.Answer{Resolved: []resolver.Endpoint{}}, noAddresses},
		{discovery.Answer{Resolved: []resolver.Endpoint{{}}}, noAddresses},
		{discovery.Answer{Why: "no such host", Resolved: []resolver.Endpoint{{}}}, "no such host: " + noAddresses},
		{discovery.Answer{Resolved: []resolver.Endpoint{{}, {Addresses: []resolver.Address{{Addr: "a:1"}}}}}, "<nil>"},
	} {
		if got := fmt.Sprint(topology.CheckNotEmpty(&test.answer)); got != test.want {
			t.Errorf("%+v: %s, want %s", test.answer, got, test.want)
		}
	}
}
