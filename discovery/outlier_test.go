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
	"github.com/understudy-lb/understudy/topology"
)

// outliers returns an outlier_detection with an interval.
func outliers(t *testing.T, seconds int64) *topology.OutlierDetection {
	t.Helper()
	read, err := topology.ReadOutlierDetection(&clusterv3.OutlierDetection{Interval: &durationpb.Duration{Seconds: seconds}})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// intervals returns those of the priorities in the last service config, by their names:
// 10s where nothing is detected.
func (l *lab) intervals() string {
	var all []string
	for _, m := range regexp.MustCompile(`"([^"]*)":\{"config":\[\{"understudy_outlier_detection":\{"interval":"([^"]*)"`).FindAllStringSubmatch(l.cc.config(), -1) {
		all = append(all, m[1]+" "+m[2])
	}
	return strings.Join(all, ", ")
}

// The outlier detection of a part is that of all its priorities (gRFC A50). A change of it
// alone reaches the policies, and costs the source nothing.
func TestOutlierDetectionOfParts(t *testing.T) {
	l := newLab(t)
	a, b := &scripted{}, &scripted{}
	tell := func(ofA, ofB *topology.OutlierDetection) {
		l.whole.Parts([]discovery.Part{{Name: "a", Source: a, OutlierDetection: ofA}, {Name: "b", Source: b, OutlierDetection: ofB}})
	}
	tell(outliers(t, 1), nil)
	b.say("10.0.0.2:1")
	a.say("10.0.0.1:1")
	const both = `state 10.0.0.1:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`
	l.saw(both)
	want := func(intervals string) {
		t.Helper()
		if got := l.intervals(); got != intervals {
			t.Errorf("intervals %s, want %s", got, intervals)
		}
	}
	want("a/child0 1s, b/child0 10s")
	tell(outliers(t, 1), nil) // the same
	l.saw("")
	tell(outliers(t, 2), outliers(t, 3))
	l.saw(both)
	want("a/child0 2s, b/child0 3s")
	tell(nil, outliers(t, 3))
	l.saw(both)
	want("a/child0 10s, b/child0 3s")
	if a.closed+b.closed > 0 {
		t.Error("a source was closed")
	}
	// Another source in a's place has what its part says, also over the endpoints it inherits.
	next := &scripted{}
	l.whole.Parts([]discovery.Part{{Name: "a", Source: next, OutlierDetection: outliers(t, 4)}})
	next.Fail(errors.New("no answer"))
	l.saw(`state 10.0.0.1:1["a/child0" "/"]`)
	want("a/child0 4s")
}

// Nobody ejects below a pick_first, which would not notice: the log says so, once.
func TestOutlierDetectionOfPartsWithPickFirst(t *testing.T) {
	const line = "x: a: outlier_detection of the cluster has no effect with pickFirst"
	l := newLab(t, discovery.WithPickFirst())
	a := &scripted{}
	for seconds := range int64(2) {
		l.whole.Parts([]discovery.Part{{Name: "a", Source: a, OutlierDetection: outliers(t, seconds+1)}})
	}
	a.say("10.0.0.1:1")
	if l.intervals() != "a/child0 10s" {
		t.Errorf("intervals %s", l.intervals())
	}
	if said := logged.Count(line); said != 1 {
		t.Errorf("said %d times, want once: %s", said, line)
	}
}

// What the target says goes before the clusters, off as well as on.
func TestOutlierDetectionOfTheTargetComesFirst(t *testing.T) {
	for query, want := range map[string]string{"": `"interval":"1s"`, "?outlierDetection=true": emptied, "?outlierDetection=false": `"interval":"10s"`} {
		cc, whole, a := &channel{}, &scripted{}, &scripted{}
		r, err := of([]discovery.Part{{Source: whole}}).Build(target("x:///y"+query), cc, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		whole.Parts([]discovery.Part{{Name: "a", Source: a, OutlierDetection: outliers(t, 1)}})
		a.say("10.0.0.1:1")
		if !strings.Contains(cc.config(), want) {
			t.Errorf("%q: config %s has no %s", query, cc.config(), want)
		}
		r.Close()
	}
}
