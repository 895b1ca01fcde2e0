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
	"github.com/understudy-lb/understudy/internal/envoy"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func outliers(t *testing.T, seconds int64) string {
	t.Helper()
	read, _, err := envoy.ReadOutlierDetection(&clusterv3.OutlierDetection{Interval: &durationpb.Duration{Seconds: seconds}})
	if err != nil {
		t.Fatal(err)
	}
	return read.JSON()
}

// intervals lists the outlier detection interval of each priority in the last service config, or
// 10s for a priority without one.
func (l *lab) intervals() string {
	var all []string
	for _, m := range regexp.MustCompile(`"([^"]*)":\{"config":\[\{"understudy_outlier_detection":\{"interval":"([^"]*)"`).FindAllStringSubmatch(l.cc.config(), -1) {
		all = append(all, m[1]+" "+m[2])
	}
	return strings.Join(all, ", ")
}

// The outlier detection of a discovery mechanism must apply to all its priorities (gRFC A50). If
// only the outlier detection changes, the policies must get an update, but the source must not be
// restarted.
func TestOutlierDetectionOfParts(t *testing.T) {
	l := newLab(t)
	a, b := &scripted{}, &scripted{}
	tell := func(ofA, ofB string) {
		l.whole.Parts([]discovery.Mechanism{{Name: "a", Source: a, OutlierDetection: ofA}, {Name: "b", Source: b, OutlierDetection: ofB}})
	}
	tell(outliers(t, 1), "")
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
	tell(outliers(t, 1), "")
	l.saw("")
	tell(outliers(t, 2), outliers(t, 3))
	l.saw(both)
	want("a/child0 2s, b/child0 3s")
	tell("", outliers(t, 3))
	l.saw(both)
	want("a/child0 10s, b/child0 3s")
	if a.closed+b.closed > 0 {
		t.Error("a source was closed")
	}
	// Mechanism a gets another source and another outlier detection. The old endpoints must stay in
	// use until the new source answers, but the new outlier detection must apply at once.
	next := &scripted{}
	l.whole.Parts([]discovery.Mechanism{{Name: "a", Source: next, OutlierDetection: outliers(t, 4)}})
	next.Fail(errors.New("no answer"))
	l.saw(`state 10.0.0.1:1["a/child0" "/"]`)
	want("a/child0 4s")
}

// The option pickFirst selects pick_first, which ignores ejections, so outlier detection has no
// effect. This must be logged once.
func TestOutlierDetectionOfPartsWithPickFirst(t *testing.T) {
	const line = "x: a: outlier_detection of the cluster has no effect with pickFirst"
	l := newLab(t, given.Set("PickFirst", true))
	a := &scripted{}
	logged.Take()
	for seconds := range int64(2) {
		l.whole.Parts([]discovery.Mechanism{{Name: "a", Source: a, OutlierDetection: outliers(t, seconds+1)}})
	}
	a.say("10.0.0.1:1")
	if l.intervals() != "a/child0 10s" {
		t.Errorf("intervals %s", l.intervals())
	}
	if said := logged.Count(line); said != 1 {
		t.Errorf("said %d times, want once: %s", said, line)
	}
}

// If the target turns outlier detection on or off, the settings of clusters must not apply.
func TestOutlierDetectionOfTheTargetComesFirst(t *testing.T) {
	for query, want := range map[string]string{"": `"interval":"1s"`, "?outlierDetection=true": emptied, "?outlierDetection=false": `"interval":"10s"`} {
		cc, whole, a := &channel{}, &scripted{}, &scripted{}
		r, err := of([]discovery.Mechanism{{Source: whole}}).Build(target("x:///y"+query), cc, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		whole.Parts([]discovery.Mechanism{{Name: "a", Source: a, OutlierDetection: outliers(t, 1)}})
		a.say("10.0.0.1:1")
		if !strings.Contains(cc.config(), want) {
			t.Errorf("%q: config %s has no %s", query, cc.config(), want)
		}
		r.Close()
	}
}

// A discovery mechanism has an invalid outlier detection. The mechanism must fail with an error
// that names it.
func TestOutlierDetectionInJSON(t *testing.T) {
	l := newLab(t)
	a := &scripted{}
	l.whole.Parts([]discovery.Mechanism{{Name: "a", Source: a, OutlierDetection: `{"interval": "7s", "failurePercentageEjection": {}}`}})
	a.say("10.0.0.1:1")
	l.saw(`state 10.0.0.1:1["a/child0" "/"]`)
	if got, want := l.intervals(), "a/child0 7s"; got != want {
		t.Errorf("intervals %s, want %s", got, want)
	}
	for text, want := range map[string]string{
		"null":                        `x: part "a": understudy_outlier_detection: "null" given, want a JSON object`,
		`{"maxEjectionPercent": 101}`: `x: part "a": understudy_outlier_detection: maxEjectionPercent: 101 given, want 0 to 100`,
		`{"interval": "x"}`:           `x: part "a": understudy_outlier_detection: interval: `,
	} {
		before := logged.Count(want)
		l.whole.Parts([]discovery.Mechanism{{Name: "a", Source: a, OutlierDetection: text}})
		if logged.Count(want) != before+1 {
			t.Errorf("%s is not logged as %s", text, want)
		}
	}
}
