package cds

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/discovery"
)

// The source of each mechanism depends on the kind and the state of its cluster. It must stay the
// same until the cluster changes.
func TestSourceOfEachMechanism(t *testing.T) {
	clusterOf := func(fields, address string) Known {
		lb := `{"endpoint":{"address":{"socketAddress":{"address":"` + address + `","portValue":1}}}}`
		return Known{Cluster: parseCluster(t, `{`+fields+`"loadAssignment":{"endpoints":[{"locality":{},"loadBalancingWeight":1,"lbEndpoints":[`+lb+`]}]}}`)}
	}
	known := map[string]Known{
		"all":     {Cluster: &Cluster{Kind: Aggregate, Children: []string{"waiting", "failed", "lost", "static", "none", "literal", "name", "host", "eds", "broken"}}},
		"failed":  {Err: errDown},
		"lost":    {Cluster: &Cluster{}, NoEndpoints: errors.New("no endpoint is listed")},
		"static":  clusterOf("", "a.test"),
		"none":    {Cluster: parseCluster(t, `{"loadAssignment":{}}`)},
		"literal": clusterOf(`"type":"STRICT_DNS",`, "10.0.0.1"),
		"name":    clusterOf(`"type":"STRICT_DNS",`, "localhost"),
		"host":    clusterOf(`"type":"LOGICAL_DNS",`, "10.0.0.2"),
		"eds":     {Cluster: parseCluster(t, `{"type":"EDS","edsClusterConfig":{"serviceName":"s"},"outlierDetection":{},"circuitBreakers":{}}`)},
		"broken":  {Cluster: parseCluster(t, `{"type":"EDS"}`)},
	}
	const want = `cluster "eds".circuit_breakers: circuit_breakers has no effect
waiting: waiting for the cluster false
failed: error cluster "failed" (named by all): server misbehaving false
lost: error no endpoint is listed false
static: [a.test:1] 0 false
none: [] 0 false
literal: [10.0.0.1:1] 0 false
name: looking up 1 name false
host: waiting for dns:///10.0.0.2:1[] 1 false
eds:  true
broken: error no server false
`
	m := Maker{Target: &discovery.Target{}, EDS: func(service string) (discovery.Source, error) {
		return &fakeLookup{}, map[string]error{"x": errors.New("no server")}[service]
	}}
	g := Resolve("all", func(name string) Known { return known[name] })
	list := m.Mechanisms(g)
	if !slices.Equal(m.Mechanisms(g), list) {
		t.Error("the same clusters have got other sources")
	}
	synctest.Test(t, func(t *testing.T) {
		got := fmt.Sprintln(g.Notes)
		for _, mechanism := range list {
			got += mechanism.Name + ": "
			started, err := mechanism.Source.Start(new(discovery.Receiver).With(discovery.Hooks{
				Trying: func(text string) { got += text },
				Fail:   func(err error) { got += "error " + err.Error() },
				Update: func(a discovery.Answer) error {
					if a.Names == nil { // what localhost resolves to doesn't matter
						got += fmt.Sprint(addressesOf(a), len(a.Resolved))
					}
					return nil
				},
			}))
			if err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if got += fmt.Sprintln("", mechanism.OutlierDetection != ""); started.Close != nil {
				started.Close()
			}
		}
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}
