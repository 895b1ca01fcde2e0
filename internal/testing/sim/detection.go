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

// detection is the outlier detection of one priority (gRFC A50). The zero value ejects nothing.
type detection struct {
	interval, base, longest time.Duration
	most                    uint32 // percent of the endpoints that may be ejected
	rate                    algorithm
	percentage              algorithm
	failures                uint32 // failures in a row; 0 turns this algorithm off
}

// algorithm is one of the two algorithms of gRFC A50. If enforced is 0, it does nothing.
type algorithm struct {
	limit    uint32
	enforced uint32
	hosts    uint32
	volume   uint32
}

// byDefault is gRFC A50's default for clusters, without the failure percentage algorithm.
var byDefault = detection{
	interval: 10 * time.Second, base: 30 * time.Second, longest: 300 * time.Second, most: 10,
	rate:       algorithm{limit: 1900, enforced: 100, hosts: 5, volume: 100},
	percentage: algorithm{limit: 85, hosts: 5, volume: 50},
}

// byTarget is the configuration of outlierDetection=true, as in docs/options.md.
var byTarget = detection{
	interval: 10 * time.Second, base: 30 * time.Second, longest: 300 * time.Second, most: 100,
	percentage: algorithm{limit: 85, enforced: 100, hosts: 1, volume: 10},
	failures:   5,
}

const longestInterval = 45 * time.Second

// newDetection returns a random configuration: none, gRFC A50's defaults, or random fields.
func newDetection(r *rand.Rand) detection {
	d := byDefault
	switch r.IntN(8) {
	case 0:
		return detection{}
	case 1:
		return d
	}
	d.interval = []time.Duration{time.Second, 4 * time.Second, d.interval, longestInterval}[r.IntN(4)]
	d.base = []time.Duration{0, 5 * time.Second, 20 * time.Second, d.base}[r.IntN(4)]
	d.longest = []time.Duration{0, 25 * time.Second, 90 * time.Second, d.longest}[r.IntN(4)]
	d.most = []uint32{0, d.most, 34, 50, 100, 100}[r.IntN(6)]
	d.rate.enforced = []uint32{0, 0, 50, 100}[r.IntN(4)]
	if r.IntN(8) > 0 {
		d.rate.limit, d.rate.hosts, d.rate.volume = uint32(r.IntN(1200)), uint32(r.IntN(4)), uint32(r.IntN(5))
	}
	d.percentage.enforced = []uint32{0, 50, 100, 100}[r.IntN(4)]
	if r.IntN(8) > 0 {
		d.percentage.limit, d.percentage.hosts, d.percentage.volume = uint32(r.IntN(101)), uint32(r.IntN(4)), uint32(r.IntN(8))
	}
	return d
}

func (d detection) ejects() bool {
	return d.rate.enforced > 0 || d.percentage.enforced > 0 || d.failures > 0
}

func (d detection) plain() detection {
	if d.rate.enforced == 0 {
		d.rate = algorithm{}
	}
	if d.percentage.enforced == 0 {
		d.percentage = algorithm{}
	}
	if !d.ejects() {
		return detection{}
	}
	return d
}

// rest returns how long after its last failure an endpoint may still be ejected: the longest
// ejection, and the intervals before and after it.
func (d detection) rest() time.Duration {
	if !d.ejects() {
		return 0
	}
	return max(d.base, d.longest) + 3*d.interval
}

// atMost returns how many of the endpoints may be ejected at a time. It is at least one.
func (d detection) atMost(endpoints int) int {
	return max(1, int(d.most)*endpoints/100)
}

func (d detection) String() string {
	if !d.ejects() {
		return ""
	}
	text := fmt.Sprintf("~%v,%v..%v,%d%%", d.interval, d.base, d.longest, d.most)
	if a := d.rate; a.enforced > 0 {
		text += fmt.Sprintf(",rate(%d %d%% %d %d)", a.limit, a.enforced, a.hosts, a.volume)
	}
	if a := d.percentage; a.enforced > 0 {
		text += fmt.Sprintf(",percentage(%d %d%% %d %d)", a.limit, a.enforced, a.hosts, a.volume)
	}
	if d.failures > 0 {
		text += fmt.Sprintf(",row(%d)", d.failures)
	}
	return text
}

// proto returns d as a field of a cluster. It omits fields with gRFC A50's defaults.
func (d detection) proto() *clusterv3.OutlierDetection {
	if d == (detection{}) {
		return nil
	}
	duration := func(d, none time.Duration) *durationpb.Duration {
		if d == none {
			return nil
		}
		return durationpb.New(d)
	}
	number := func(n, none uint32) *wrapperspb.UInt32Value {
		if n == none {
			return nil
		}
		return wrapperspb.UInt32(n)
	}
	return &clusterv3.OutlierDetection{
		Interval:                       duration(d.interval, byDefault.interval),
		BaseEjectionTime:               duration(d.base, byDefault.base),
		MaxEjectionTime:                duration(d.longest, byDefault.longest),
		MaxEjectionPercent:             number(d.most, byDefault.most),
		EnforcingSuccessRate:           number(d.rate.enforced, byDefault.rate.enforced),
		SuccessRateStdevFactor:         number(d.rate.limit, byDefault.rate.limit),
		SuccessRateMinimumHosts:        number(d.rate.hosts, byDefault.rate.hosts),
		SuccessRateRequestVolume:       number(d.rate.volume, byDefault.rate.volume),
		EnforcingFailurePercentage:     number(d.percentage.enforced, byDefault.percentage.enforced),
		FailurePercentageThreshold:     number(d.percentage.limit, byDefault.percentage.limit),
		FailurePercentageMinimumHosts:  number(d.percentage.hosts, byDefault.percentage.hosts),
		FailurePercentageRequestVolume: number(d.percentage.volume, byDefault.percentage.volume),
	}
}

func detectionIn(text json.RawMessage) detection {
	type algorithmJSON struct {
		StdevFactor, Threshold, EnforcementPercentage, MinimumHosts, RequestVolume uint32
	}
	given := parse[struct {
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
	of := func(a algorithmJSON) algorithm {
		return algorithm{a.StdevFactor + a.Threshold, a.EnforcementPercentage, a.MinimumHosts, a.RequestVolume}
	}
	return detection{
		duration(given.Interval), duration(given.BaseEjectionTime), duration(given.MaxEjectionTime),
		given.MaxEjectionPercent, of(given.SuccessRateEjection), of(given.FailurePercentageEjection),
		given.ConsecutiveFailuresEjection.Failures,
	}.plain()
}

// detections has the outlier detection of the clusters in an aggregate, by position.
type detections struct {
	mu   sync.Mutex
	of   [mostMembers]detection
	ever []detection
}

func newDetections(r *rand.Rand) *detections {
	d := &detections{}
	for i := range d.of {
		d.of[i] = newDetection(r)
	}
	d.ever = append(d.ever, d.of[:]...)
	return d
}

// redraw changes the configuration of one of the first clusters.
func (d *detections) redraw(r *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	drawn := newDetection(r)
	d.of[r.IntN(3)] = drawn
	d.ever = append(d.ever, drawn)
}

func (d *detections) at(i int) detection {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of[i%len(d.of)]
}

// seen adds the outlier detection of each cluster to its priorities.
func (d *detections) seen(truth Truth) Truth {
	all := Truth{}
	for i, own := range members(truth) {
		for _, tier := range own.Clone() {
			all = append(all, tier.detecting(d.at(i).plain()))
		}
	}
	return all
}

func (t Tier) detecting(d detection) Tier {
	for i := range t {
		t[i].Detection = d
	}
	return t
}

// All localities of a priority have the same outlier detection.
func (t Tier) detection() detection {
	if len(t) == 0 {
		return detection{}
	}
	return t[0].Detection
}

func (t Truth) detects() bool {
	return slices.ContainsFunc(t, func(tier Tier) bool { return tier.detection().ejects() })
}

func (t Truth) detections() []detection {
	all := make([]detection, len(t))
	for i, tier := range t {
		all[i] = tier.detection()
	}
	return all
}

// sees sets the outlier detection that the channel uses. The target takes precedence over the
// clusters, and pick_first over several endpoints has none.
func (s settings) sees(truth Truth) Truth {
	truth = truth.Clone()
	for _, tier := range truth {
		switch {
		case s.detects == "true":
			tier.detecting(byTarget)
		case s.detects == "false" || s.pickFirst:
			tier.detecting(detection{})
		}
	}
	return truth
}

func redetect(s Source, r *rand.Rand) {
	if clusters, ok := s.(interface{ redetect(r *rand.Rand) }); ok {
		clusters.redetect(r)
	}
}
