package sim

import (
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/prioritymodel"
)

// settings are the channel's random options. They end up as parameters of its target.
type settings struct {
	timing

	failoverTimeout, slowStart time.Duration

	detects bool

	// pickFirst sends all calls to a locality to a single endpoint.
	pickFirst bool

	warmStandby int

	// overflow spreads calls over the READY priorities by their shares.
	overflow bool
	ramp     time.Duration
}

func newSettings(r *rand.Rand) settings {
	s := settings{failoverTimeout: defaultFailoverTimeout, timing: newTiming(r), overflow: r.IntN(3) > 0, detects: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		return s
	}
	if r.IntN(3) == 0 {
		s.failoverTimeout = time.Duration(5+15*r.IntN(2)) * time.Second
	}
	if r.IntN(4) == 0 {
		s.slowStart = time.Duration(5+r.IntN(30)) * time.Second
	}
	if r.IntN(2) == 0 {
		s.warmStandby = 1 + r.IntN(2)
	}
	if s.overflow {
		s.ramp = time.Duration(r.IntN(3)/2*(2+r.IntN(15))) * time.Second
	}
	if r.IntN(6) == 0 {
		s.choosePickFirst()
	}
	return s
}

func (s settings) addTo(target string) string {
	params := url.Values{}
	if s.failoverTimeout != defaultFailoverTimeout {
		params.Set("failoverTimeout", s.failoverTimeout.String())
	}
	if s.overflow {
		params.Set("overflow", "true")
	}
	if s.ramp > 0 {
		params.Set("ramp", s.ramp.String())
	}
	if s.warmStandby > 0 {
		params.Set("warmStandby", strconv.Itoa(s.warmStandby))
	}
	if s.slowStart > 0 {
		params.Set("slowStart", s.slowStart.String())
	}
	if s.pickFirst {
		params.Set("endpointPolicy", "pick_first")
	}
	if s.detects {
		params.Set("outlierDetection", "true")
	}
	switch {
	case len(params) == 0:
		return target
	case strings.Contains(target, "?"):
		return target + "&" + params.Encode()
	}
	return target + "?" + params.Encode()
}

// detectionInterval is A50's interval. maxEjectedTime is how long after its last failure an
// endpoint may still be ejected, i.e. A50's longest ejection plus the intervals before and after
// it.
const (
	detectionInterval = 10 * time.Second
	maxEjectedTime    = 300*time.Second + 3*detectionInterval
)

const childRetention = 15 * time.Minute

func (s settings) modelConfig(t tree) prioritymodel.Config {
	priorities := t.priorities
	config := prioritymodel.Config{
		Children:        make(map[string]prioritymodel.Child),
		Priorities:      priorities,
		FailoverTimeout: s.failoverTimeout,
		ChildRetention:  childRetention,
		WarmStandby:     s.warmStandby,
		Overflow:        s.overflow,
	}
	for _, name := range priorities {
		config.Children[name] = prioritymodel.Child{Policy: name}
	}
	return config
}

func (s settings) maxFailoverTime(priorities int) time.Duration {
	return time.Duration(priorities)*s.failoverTimeout + s.keepalive + s.keepaliveTimeout + s.maxAttemptTime() + s.maxJitteredBackoff() + 5*time.Second
}

func (s *settings) choosePickFirst() {
	s.pickFirst, s.slowStart, s.detects = true, 0, false
}
