package cds

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/discovery"
)

// The source of each mechanism depends on the kind and the state of its cluster. It must stay the
// same until the cluster changes.
func TestSourceOfEachMechanism(t *testing.T) {
	clusterOf := func(fields, address string) Known {
		return Known{Cluster: parseCluster(t, fmt.Sprintf(`{%s"loadAssignment":{"endpoints":[{"locality":{},"loadBalancingWeight":1,"lbEndpoints":[{"endpoint":{"address":{"socketAddress":{"address":%q,"portValue":1}}}}]}]}}`, fields, address))}
	}
	rows := []struct {
		name, reports string
		known         Known
	}{
		{"waiting", "waiting for the cluster", Known{}},
		{"failed", `error cluster "failed" (named by all): server misbehaving`, Known{Err: errDown}},
		{"lost", "error server misbehaving", Known{Cluster: &Cluster{}, NoEndpoints: errDown}},
		{"static", "[a.test:1] 0", clusterOf("", "a.test")},
		{"none", "[] 0", Known{Cluster: parseCluster(t, `{"loadAssignment":{}}`)}},
		{"literal", "[10.0.0.1:1] 0", clusterOf(`"type":"STRICT_DNS",`, "10.0.0.1")},
		{"name", "looking up 1 name", clusterOf(`"type":"STRICT_DNS",`, "localhost")},
		{"host", "waiting for dns:///10.0.0.2:1[] 1", clusterOf(`"type":"LOGICAL_DNS",`, "10.0.0.2")},
		{"eds", "", Known{Cluster: parseCluster(t, `{"type":"EDS","edsClusterConfig":{"serviceName":"s"},"outlierDetection":{},"circuitBreakers":{}}`)}},
		{"broken", "error no server", Known{Cluster: parseCluster(t, `{"type":"EDS"}`)}},
	}
	all, known := &Cluster{}, map[string]Known{}
	for _, row := range rows {
		all.Children, known[row.name] = append(all.Children, row.name), row.known
	}
	known["all"] = Known{Cluster: all}
	m := Maker{Target: &discovery.Target{}, EDS: func(service string) (discovery.Source, error) {
		return &fakeLookup{}, map[string]error{"x": errors.New("no server")}[service]
	}}
	g := Resolve("all", func(name string) Known { return known[name] })
	list := m.Mechanisms(g)
	if again := m.Mechanisms(g); !slices.Equal(again, list) || fmt.Sprint(g.Notes) != `cluster "eds".circuit_breakers: circuit_breakers has no effect` {
		t.Errorf("the mechanisms are %v, then %v, with the notes %v", list, again, g.Notes)
	}
	_, _ = net.LookupHost("localhost") // or else net's first lookup makes a channel of this bubble
	synctest.Test(t, func(t *testing.T) {
		for i, row := range rows {
			got := ""
			started, _ := list[i].Source.Start(new(discovery.Receiver).With(discovery.Hooks{
				Trying: func(text string) { got += text },
				Fail:   func(err error) { got += "error " + err.Error() },
				Update: func(a discovery.Answer) error {
					if a.Names == nil { // what localhost resolves to doesn't matter
						got += fmt.Sprint(addressesOf(a), len(a.Resolved))
					}
					return nil
				},
			}))
			synctest.Wait()
			if hasOutliers := list[i].OutlierDetection != ""; list[i].Name != row.name || got != row.reports || hasOutliers != (row.name == "eds") {
				t.Errorf("%s: the mechanism %v reports %q, want %q", row.name, list[i], got, row.reports)
			}
			if started.Close != nil {
				started.Close()
			}
		}
	})
}
