package discovery_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc/resolver"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func outlierDetectionJSON(t *testing.T, seconds int64) string {
	t.Helper()
	read, _, err := messages.ReadOutlierDetection(&clusterv3.OutlierDetection{Interval: &durationpb.Duration{Seconds: seconds}})
	if err != nil {
		t.Fatal(err)
	}
	return topology.OutlierDetectionJSON(read)
}

// intervals returns the outlier detection interval of each priority in the last service config. The
// interval of a priority without outlier detection is 10s.
func (l *listLab) intervals() string {
	var all []string
	for _, m := range regexp.MustCompile(`"([^"]*)":\{"config":\[\{"understudy_outlier_detection":\{"interval":"([^"]*)"`).FindAllStringSubmatch(l.cc.config(), -1) {
		all = append(all, m[1]+" "+m[2])
	}
	return strings.Join(all, ", ")
}

// The outlier detection of a discovery mechanism must apply to all its priorities (gRFC A50). A
// list that changes only the outlier detection must update the policies without restarting the
// source.
func TestMechanismOutlierDetection(t *testing.T) {
	l := newListLab(t)
	a, b := &fakeSource{}, &fakeSource{}
	sendList := func(ofA, ofB string) {
		l.listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a, OutlierDetection: ofA}, {Name: "b", Source: b, OutlierDetection: ofB}})
	}
	sendList(outlierDetectionJSON(t, 1), "")
	b.sendAddresses("10.0.0.2:1")
	a.sendAddresses("10.0.0.1:1")
	const both = `state 10.0.0.1:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`
	l.wantUpdates(both)
	want := func(intervals string) {
		t.Helper()
		if got := l.intervals(); got != intervals {
			t.Errorf("intervals %s, want %s", got, intervals)
		}
	}
	want("a/child0 1s, b/child0 10s")
	sendList(outlierDetectionJSON(t, 1), "")
	l.wantUpdates("")
	sendList(outlierDetectionJSON(t, 2), outlierDetectionJSON(t, 3))
	l.wantUpdates(both)
	want("a/child0 2s, b/child0 3s")
	sendList("", outlierDetectionJSON(t, 3))
	l.wantUpdates(both)
	want("a/child0 10s, b/child0 3s")
	if a.closeCount+b.closeCount > 0 {
		t.Error("a source was closed")
	}
	// Mechanism a gets another source and another outlier detection. The old endpoints must stay in
	// use until the new source answers. The new outlier detection must apply immediately.
	next := &fakeSource{}
	l.listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: next, OutlierDetection: outlierDetectionJSON(t, 4)}})
	next.Fail(errors.New("no answer"))
	l.wantUpdates(`state 10.0.0.1:1["a/child0" "/"]`)
	want("a/child0 4s")
}

// The policy pick_first ignores ejections, so outlier detection has no effect with the option
// pick_first. This must be logged once.
func TestMechanismOutlierDetectionWithPickFirst(t *testing.T) {
	const line = "x: a: outlier_detection of the cluster has no effect with pick_first"
	l := newListLab(t, given.Set("EndpointPolicy", "pick_first"))
	a := &fakeSource{}
	logged.Take()
	for seconds := range int64(2) {
		l.listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a, OutlierDetection: outlierDetectionJSON(t, seconds+1)}})
	}
	a.sendAddresses("10.0.0.1:1")
	if l.intervals() != "a/child0 10s" {
		t.Errorf("intervals %s", l.intervals())
	}
	if said := logged.Count(line); said != 1 {
		t.Errorf("said %d times, want once: %s", said, line)
	}
}

// If the target turns outlier detection on or off, the setting of a mechanism must have no effect.
func TestTargetOverridesMechanismOutlierDetection(t *testing.T) {
	for query, want := range map[string]string{"": `"interval":"1s"`, "?outlierDetection=true": outlierDetectionOn, "?outlierDetection=false": `"interval":"10s"`} {
		cc, listSource, a := &channel{}, &fakeSource{}, &fakeSource{}
		r, err := newBuilder([]discovery.Mechanism{{Source: listSource}}).Build(target("x:///y"+query), cc, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a, OutlierDetection: outlierDetectionJSON(t, 1)}})
		a.sendAddresses("10.0.0.1:1")
		if !strings.Contains(cc.config(), want) {
			t.Errorf("%q: config %s has no %s", query, cc.config(), want)
		}
		r.Close()
	}
}

// The outlier detection of a mechanism is JSON text. Valid text must reach the policies. Invalid
// text must be logged with the mechanism's name.
func TestMechanismOutlierDetectionJSON(t *testing.T) {
	l := newListLab(t)
	a := &fakeSource{}
	l.listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a, OutlierDetection: `{"interval": "7s", "failurePercentageEjection": {}}`}})
	a.sendAddresses("10.0.0.1:1")
	l.wantUpdates(`state 10.0.0.1:1["a/child0" "/"]`)
	if got, want := l.intervals(), "a/child0 7s"; got != want {
		t.Errorf("intervals %s, want %s", got, want)
	}
	for text, want := range map[string]string{
		"null":                        `x: mechanism "a": understudy_outlier_detection: "null" given, want a JSON object`,
		`{"maxEjectionPercent": 101}`: `x: mechanism "a": understudy_outlier_detection: maxEjectionPercent: 101 given, want 0 to 100`,
		`{"interval": "x"}`:           `x: mechanism "a": understudy_outlier_detection: interval: `,
	} {
		before := logged.Count(want)
		l.listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a, OutlierDetection: text}})
		if logged.Count(want) != before+1 {
			t.Errorf("%s is not logged as %s", text, want)
		}
	}
}

// Weights that the endpoint policy ignores are logged once. Equal weights are none.
func TestWeightsThatPolicyIgnores(t *testing.T) {
	const line = "x: a: the weights of endpoints have no effect with pick_first"
	l := newListLab(t, given.Set("EndpointPolicy", "pick_first"))
	a := &fakeSource{}
	l.listSource.Mechanisms([]discovery.Mechanism{{Name: "a", Source: a}})
	logged.Take()
	for _, second := range []uint32{1, 2, 3} {
		_ = a.Update(discovery.Answer{Priorities: []discovery.Priority{{Localities: []discovery.Locality{{Weight: 1, Endpoints: []discovery.Endpoint{
			{Addresses: []string{"10.0.0.1:1"}}, {Addresses: []string{"10.0.0.2:1"}, Weight: second},
		}}}}}})
		if said := logged.Count(line); said != min(1, int(second)-1) {
			t.Errorf("weight %d: said %d times: %s", second, said, line)
		}
	}
}
