package messages

import (
	"encoding/json"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

const (
	priorityName         = "understudy_priority"
	outlierDetectionName = "understudy_outlier_detection"
	dropName             = "understudy_drop"
	weightedTargetName   = "understudy_weighted_target"
)

type tree struct {
	topology.Tree
	notes []Problem
}

func readAndTranslate(tr *topology.Translator, cluster *endpointv3.ClusterLoadAssignment) (tree, error) {
	answer, notes, err := Read(cluster)
	if err != nil {
		return tree{}, err
	}
	made, err := tr.Translate(&answer)
	return tree{made, notes}, err
}

func translate(t *testing.T, tr *topology.Translator, cluster *endpointv3.ClusterLoadAssignment) tree {
	t.Helper()
	made, err := readAndTranslate(tr, cluster)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

type top struct {
	Children map[string]struct {
		Config                     []map[string]outlierLevel
		IgnoreReresolutionRequests bool
	}
	Priorities            []string
	RemovedChildRetention string
}

type outlierLevel struct {
	ChildPolicy []map[string]dropLevel
}

type dropLevel struct {
	DropCategories []lbconfig.DropCategory
	ChildPolicy    []map[string]targetLevel
}

type targetLevel struct {
	Targets               map[string]struct{ Weight uint32 }
	RemovedChildRetention string
}

func parse(t *testing.T, tree tree) top {
	t.Helper()
	var config []map[string]top
	if err := json.Unmarshal([]byte(lbtest.JSON(configOf(tree.Tree))), &config); err != nil {
		t.Fatalf("config %s: %v", lbtest.JSON(configOf(tree.Tree)), err)
	}
	return config[0][priorityName]
}

// shape describes a configuration. The line of each priority has its name, its localities with
// their weights, and its drops.
func shape(t *testing.T, tree tree) string {
	t.Helper()
	config, s := parse(t, tree), ""
	for _, name := range config.Priorities {
		drop := config.Children[name].Config[0][outlierDetectionName].ChildPolicy[0][dropName]
		targets, _ := json.Marshal(drop.ChildPolicy[0][weightedTargetName].Targets)
		drops, _ := json.Marshal(append([]lbconfig.DropCategory{}, drop.DropCategories...))
		s += name + " " + string(targets) + " " + string(drops) + "\n"
	}
	return s
}

func TestTranslate(t *testing.T) {
	given := cluster(
		newLocality(1, "eu/c", "10.1.0.1"),
		withWeight(3, newLocality(0, "us/a", "10.0.0.1*5", "10.0.0.2")),
		newLocality(0, "us/b", "2001:DB8:0::1"),
	)
	untouched := proto.Clone(given)
	tree := translate(t, new(topology.Translator), given)

	want := `child0 {"us/a":{"Weight":3},"us/b":{"Weight":1}} []` + "\n" + `child1 {"eu/c":{"Weight":1}} []` + "\n"
	if got := shape(t, tree); got != want {
		t.Errorf("config:\n%swant:\n%s", got, want)
	}
	want = `10.0.0.1:80 ["child0","us/a"] 5` + "\n" + `10.0.0.2:80 ["child0","us/a"] 1` + "\n" +
		`[2001:db8::1]:80 ["child0","us/b"] 1` + "\n" + `10.1.0.1:80 ["child1","eu/c"] 1` + "\n"
	if got := paths(tree.Endpoints); got != want {
		t.Errorf("endpoints:\n%swant:\n%s", got, want)
	}
	if config := parse(t, tree); config.RemovedChildRetention != "0s" || !config.Children["child0"].IgnoreReresolutionRequests {
		t.Errorf("config = %s, want removed children dropped and re-resolution ignored", lbtest.JSON(configOf(tree.Tree)))
	}
	if !proto.Equal(given, untouched) {
		t.Error("the cluster was modified")
	}
	for _, e := range tree.Endpoints {
		if name := e.Addresses[0].ServerName; name != "" {
			t.Errorf("server name %q was taken from the data", name)
		}
	}
}

func TestUnhealthyEndpointsAreOmitted(t *testing.T) {
	for number, name := range corev3.HealthStatus_name {
		c := cluster(newLocality(0, "us", "a"))
		c.Endpoints[0].LbEndpoints[0].HealthStatus = corev3.HealthStatus(number)
		if n := len(translate(t, new(topology.Translator), c).Endpoints); (n == 1) != (name == "UNKNOWN" || name == "HEALTHY") {
			t.Errorf("%s: %d endpoints get traffic", name, n)
		}
	}
}

func TestDropsOfEveryPriority(t *testing.T) {
	c := cluster(newLocality(0, "us", "10.0.0.1"), newLocality(1, "eu", "10.1.0.1"))
	c.Policy = &endpointv3.ClusterLoadAssignment_Policy{}
	drop := func(category string, numerator uint32, denominator typev3.FractionalPercent_DenominatorType) {
		c.Policy.DropOverloads = append(c.Policy.DropOverloads, &endpointv3.ClusterLoadAssignment_Policy_DropOverload{
			Category:       category,
			DropPercentage: &typev3.FractionalPercent{Numerator: numerator, Denominator: denominator},
		})
	}
	drop("lb", 5, typev3.FractionalPercent_HUNDRED)
	drop("throttle", 5, typev3.FractionalPercent_TEN_THOUSAND)
	drop("rest", 5, typev3.FractionalPercent_MILLION)
	drop("all", 4_294_967_295, typev3.FractionalPercent_HUNDRED)
	drops := `[{"category":"lb","requestsPerMillion":50000},{"category":"throttle","requestsPerMillion":500},` +
		`{"category":"rest","requestsPerMillion":5},{"category":"all","requestsPerMillion":1000000}]`
	want := `child0 {"us":{"Weight":1}} ` + drops + "\n" + `child1 {"eu":{"Weight":1}} ` + drops + "\n"
	if got := shape(t, translate(t, new(topology.Translator), c)); got != want {
		t.Errorf("config:\n%swant:\n%s", got, want)
	}
}

// A cluster is valid even if no endpoint gets calls. The tree must then contain the reason.
func TestReasonOfEmptyTree(t *testing.T) {
	for _, test := range []struct {
		want    string
		cluster *endpointv3.ClusterLoadAssignment
	}{
		{`cluster "cluster" has no localities`, cluster()},
		{`cluster "cluster" has no locality with a weight (1 in total)`, cluster(withoutWeight(newLocality(0, "us", "a")))},
		{"", cluster(newLocality(0, "us", "a"))},
	} {
		tree := translate(t, new(topology.Translator), test.cluster)
		if tree.Why != test.want {
			t.Errorf("%v: reason %q, want %q", test.cluster, tree.Why, test.want)
		}
	}
}

// configOf returns the configuration of a channel with a single mechanism and without options.
func configOf(tree topology.Tree) *lbconfig.Priority {
	policies, _ := topology.NewPolicies(topology.Settings{})
	return policies.Combine(tree).Config()
}
