package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// detection is the outlier detection configuration of one priority (gRFC A50). The zero value
// ejects nothing.
type detection struct {
	interval, baseEjection, maxEjection time.Duration
	maxPercent                          uint32
	successRate                         algorithm
	failurePercentage                   algorithm
	consecutiveFailures                 uint32 // 0 turns this algorithm off
}

// algorithm configures the success rate or the failure percentage algorithm of gRFC A50. It does
// nothing if enforcement is 0.
type algorithm struct {
	threshold   uint32
	enforcement uint32
	minHosts    uint32
	minVolume   uint32
}

// defaultDetection has gRFC A50's default values for clusters, which do not enforce the failure
// percentage algorithm.
var defaultDetection = detection{
	interval: 10 * time.Second, baseEjection: 30 * time.Second, maxEjection: 300 * time.Second, maxPercent: 10,
	successRate:       algorithm{threshold: 1900, enforcement: 100, minHosts: 5, minVolume: 100},
	failurePercentage: algorithm{threshold: 85, minHosts: 5, minVolume: 50},
}

// targetDetection is the configuration that the target's parameter outlierDetection=true selects
// (docs/options.md).
var targetDetection = detection{
	interval: 10 * time.Second, baseEjection: 30 * time.Second, maxEjection: 300 * time.Second, maxPercent: 100,
	failurePercentage:   algorithm{threshold: 85, enforcement: 100, minHosts: 1, minVolume: 10},
	consecutiveFailures: 5,
}

const maxInterval = 45 * time.Second

// newDetection returns a random configuration: the zero value, gRFC A50's default values, or random
// values.
func newDetection(r *rand.Rand) detection {
	d := defaultDetection
	switch r.IntN(8) {
	case 0:
		return detection{}
	case 1:
		return d
	}
	d.interval = []time.Duration{time.Second, 4 * time.Second, d.interval, maxInterval}[r.IntN(4)]
	d.baseEjection = []time.Duration{0, 5 * time.Second, 20 * time.Second, d.baseEjection}[r.IntN(4)]
	d.maxEjection = []time.Duration{0, 25 * time.Second, 90 * time.Second, d.maxEjection}[r.IntN(4)]
	d.maxPercent = []uint32{0, d.maxPercent, 34, 50, 100, 100}[r.IntN(6)]
	d.successRate.enforcement = []uint32{0, 0, 50, 100}[r.IntN(4)]
	if r.IntN(8) > 0 {
		d.successRate.threshold, d.successRate.minHosts, d.successRate.minVolume = uint32(r.IntN(1200)), uint32(r.IntN(4)), uint32(r.IntN(5))
	}
	d.failurePercentage.enforcement = []uint32{0, 50, 100, 100}[r.IntN(4)]
	if r.IntN(8) > 0 {
		d.failurePercentage.threshold, d.failurePercentage.minHosts, d.failurePercentage.minVolume = uint32(r.IntN(101)), uint32(r.IntN(4)), uint32(r.IntN(8))
	}
	return d
}

func (d detection) ejects() bool {
	return d.successRate.enforcement > 0 || d.failurePercentage.enforcement > 0 || d.consecutiveFailures > 0
}

func (d detection) normalized() detection {
	if d.successRate.enforcement == 0 {
		d.successRate = algorithm{}
	}
	if d.failurePercentage.enforcement == 0 {
		d.failurePercentage = algorithm{}
	}
	if !d.ejects() {
		return detection{}
	}
	return d
}

// maxEjectedTime returns how long after its last failure an endpoint may still be ejected: the sum
// of the maximum ejection time and the intervals before and after the ejection.
func (d detection) maxEjectedTime() time.Duration {
	if !d.ejects() {
		return 0
	}
	return max(d.baseEjection, d.maxEjection) + 3*d.interval
}

func (d detection) maxEjected(endpoints int) int {
	return max(1, int(d.maxPercent)*endpoints/100)
}

func (d detection) String() string {
	if !d.ejects() {
		return ""
	}
	text := fmt.Sprintf("~%v,%v..%v,%d%%", d.interval, d.baseEjection, d.maxEjection, d.maxPercent)
	if a := d.successRate; a.enforcement > 0 {
		text += fmt.Sprintf(",rate(%d %d%% %d %d)", a.threshold, a.enforcement, a.minHosts, a.minVolume)
	}
	if a := d.failurePercentage; a.enforcement > 0 {
		text += fmt.Sprintf(",percentage(%d %d%% %d %d)", a.threshold, a.enforcement, a.minHosts, a.minVolume)
	}
	if d.consecutiveFailures > 0 {
		text += fmt.Sprintf(",row(%d)", d.consecutiveFailures)
	}
	return text
}

// proto omits fields with gRFC A50's default values.
func (d detection) proto() *clusterv3.OutlierDetection {
	if d == (detection{}) {
		return nil
	}
	duration := func(d, byDefault time.Duration) *durationpb.Duration {
		if d == byDefault {
			return nil
		}
		return durationpb.New(d)
	}
	number := func(n, byDefault uint32) *wrapperspb.UInt32Value {
		if n == byDefault {
			return nil
		}
		return wrapperspb.UInt32(n)
	}
	return &clusterv3.OutlierDetection{
		Interval:                       duration(d.interval, defaultDetection.interval),
		BaseEjectionTime:               duration(d.baseEjection, defaultDetection.baseEjection),
		MaxEjectionTime:                duration(d.maxEjection, defaultDetection.maxEjection),
		MaxEjectionPercent:             number(d.maxPercent, defaultDetection.maxPercent),
		EnforcingSuccessRate:           number(d.successRate.enforcement, defaultDetection.successRate.enforcement),
		SuccessRateStdevFactor:         number(d.successRate.threshold, defaultDetection.successRate.threshold),
		SuccessRateMinimumHosts:        number(d.successRate.minHosts, defaultDetection.successRate.minHosts),
		SuccessRateRequestVolume:       number(d.successRate.minVolume, defaultDetection.successRate.minVolume),
		EnforcingFailurePercentage:     number(d.failurePercentage.enforcement, defaultDetection.failurePercentage.enforcement),
		FailurePercentageThreshold:     number(d.failurePercentage.threshold, defaultDetection.failurePercentage.threshold),
		FailurePercentageMinimumHosts:  number(d.failurePercentage.minHosts, defaultDetection.failurePercentage.minHosts),
		FailurePercentageRequestVolume: number(d.failurePercentage.minVolume, defaultDetection.failurePercentage.minVolume),
	}
}

func detectionIn(text json.RawMessage) detection {
	type algorithmJSON struct {
		StdevFactor, Threshold, EnforcementPercentage, MinimumHosts, RequestVolume uint32
	}
	parsed := parse[struct {
		Interval, BaseEjectionTime, MaxEjectionTime string
		MaxEjectionPercent                          uint32
		SuccessRateEjection                         algorithmJSON
		FailurePercentageEjection                   algorithmJSON
		ConsecutiveFailuresEjection                 struct{ Failures, EnforcementPercentage uint32 }
	}](text)
	duration := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic(err)
		}
		return d
	}
	toAlgorithm := func(a algorithmJSON) algorithm {
		return algorithm{a.StdevFactor + a.Threshold, a.EnforcementPercentage, a.MinimumHosts, a.RequestVolume}
	}
	return detection{
		duration(parsed.Interval), duration(parsed.BaseEjectionTime), duration(parsed.MaxEjectionTime),
		parsed.MaxEjectionPercent, toAlgorithm(parsed.SuccessRateEjection), toAlgorithm(parsed.FailurePercentageEjection),
		parsed.ConsecutiveFailuresEjection.Failures,
	}.normalized()
}

// detections has the outlier detection of the clusters in an aggregate, indexed by position.
// history also has the previous configurations.
type detections struct {
	mu      sync.Mutex
	current [maxMembers]detection
	history []detection
}

func newDetections(r *rand.Rand) *detections {
	d := &detections{}
	for i := range d.current {
		d.current[i] = newDetection(r)
	}
	d.history = append(d.history, d.current[:]...)
	return d
}

func (d *detections) redraw(r *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	drawn := newDetection(r)
	d.current[r.IntN(3)] = drawn
	d.history = append(d.history, drawn)
}

func (d *detections) get(i int) detection {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current[i%len(d.current)]
}

func (d *detections) withDetection(truth EndpointSet) EndpointSet {
	all := EndpointSet{}
	for i, member := range members(truth) {
		for _, tier := range member.Clone() {
			all = append(all, tier.setDetection(d.get(i).normalized()))
		}
	}
	return all
}

func (t Tier) setDetection(d detection) Tier {
	for i := range t {
		t[i].Detection = d
	}
	return t
}

func (t Tier) detection() detection {
	if len(t) == 0 {
		return detection{}
	}
	return t[0].Detection
}

func (t EndpointSet) detects() bool {
	return slices.ContainsFunc(t, func(tier Tier) bool { return tier.detection().ejects() })
}

func (t EndpointSet) detections() []detection {
	all := make([]detection, len(t))
	for i, tier := range t {
		all[i] = tier.detection()
	}
	return all
}

// effective returns a copy of truth with the outlier detection that the channel uses: that of the
// target if it is set, otherwise that of the clusters, and none with pickFirst.
func (s settings) effective(truth EndpointSet) EndpointSet {
	truth = truth.Clone()
	for _, tier := range truth {
		switch {
		case s.outlierDetection == "true":
			tier.setDetection(targetDetection)
		case s.outlierDetection == "false" || s.pickFirst:
			tier.setDetection(detection{})
		}
	}
	return truth
}

func changeDetection(s Source, r *rand.Rand) {
	if clusters, ok := s.(interface{ changeDetection(r *rand.Rand) }); ok {
		clusters.changeDetection(r)
	}
}
