package sim

import (
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/prioritymodel"
)

// settings are the random options of the channel. They are parameters of its target.
type settings struct {
	timing

	failover, failback, slowStart time.Duration

	// longestFailback limits the failback delay, which doubles while a priority comes and goes. It
	// is at least failback.
	longestFailback time.Duration
	// jitter is the window of a random delay, which the model of gRFC A56 does not predict.
	jitter time.Duration

	minReady, recovery float64 // recovery is at least minReady

	// detects is outlierDetection in the target: "true", "false", or "" if the clusters decide.
	detects string

	// pickFirst sends the calls of each locality to one of its endpoints.
	pickFirst bool

	standbys int
	fast     bool

	near nearby
}

// Possible values of minReady and minReadyRecovery. No priority can have exactly such a share, so
// rounding does not matter.
var (
	minReadies = []float64{0.353, 0.553}
	recoveries = []float64{0, 0.797}
)

func (s *settings) choosePlace(near nearby, r *rand.Rand) {
	if s.near = near; s.near.prefer == "balance" {
		s.chooseBalance(r)
	}
}

// newSettings returns random options. Every second simulation has only those of gRFC A56, on
// average.
func newSettings(r *rand.Rand) settings {
	s := settings{failover: failoverTime, timing: newTiming(r)}
	if r.IntN(2) == 0 {
		return s
	}
	if r.IntN(3) == 0 {
		s.failover = time.Duration(5+15*r.IntN(2)) * time.Second
	}
	if r.IntN(3) == 0 {
		s.failback = time.Duration(5+r.IntN(60)) * time.Second
		s.longestFailback = s.failback * time.Duration(1+r.IntN(4))
		s.jitter = time.Duration(r.IntN(3)/2*20) * time.Second
	}
	if r.IntN(4) == 0 {
		s.slowStart = time.Duration(5+r.IntN(30)) * time.Second
	}
	if r.IntN(2) == 0 {
		s.minReady = minReadies[r.IntN(len(minReadies))]
		s.recovery = max(s.minReady, recoveries[r.IntN(len(recoveries))])
	}
	s.detects = []string{"true", "true", "", "false"}[r.IntN(4)]
	if r.IntN(2) == 0 {
		s.standbys = 1 + r.IntN(2)
	}
	s.fast = r.IntN(2) == 0
	if r.IntN(6) == 0 {
		s.choosePickFirst()
	}
	return s
}

// within adds the options to the target as parameters.
func (s settings) within(target string) string {
	given := url.Values{}
	if s.failover != failoverTime {
		given.Set("failoverTimeout", s.failover.String())
	}
	if s.failback > 0 {
		given.Set("failbackDelay", s.failback.String())
	}
	if s.longestFailback > s.failback {
		given.Set("maxFailbackDelay", s.longestFailback.String())
	}
	if s.jitter > 0 {
		given.Set("failbackJitter", s.jitter.String())
	}
	if s.standbys > 0 {
		given.Set("warmStandby", strconv.Itoa(s.standbys))
	}
	if s.fast {
		given.Set("fastFailover", "true")
	}
	if s.slowStart > 0 {
		given.Set("slowStart", s.slowStart.String())
	}
	if s.minReady > 0 {
		given.Set("minReady", decimal(s.minReady))
	}
	if s.recovery > s.minReady {
		given.Set("minReadyRecovery", decimal(s.recovery))
	}
	if s.pickFirst {
		given.Set("pickFirst", "true")
	}
	if s.detects != "" {
		given.Set("outlierDetection", s.detects)
	}
	s.near.set(given)
	switch {
	case len(given) == 0:
		return target
	case strings.Contains(target, "?"):
		return target + "&" + given.Encode()
	}
	return target + "?" + given.Encode()
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// childKept is how long gRFC A56 keeps an unused child.
const childKept = 15 * time.Minute

// model returns the configuration for the model of gRFC A56. The policy sees taps instead of
// pick_first below it, so it assumes that a child with one endpoint has a single connection.
func (s settings) model(t tree, truth Truth) prioritymodel.Config {
	priorities := t.priorities
	config := prioritymodel.Config{
		Children:         make(map[string]prioritymodel.Child),
		Priorities:       priorities,
		Of:               t.of,
		FailoverTimeout:  s.failover,
		ChildRetention:   childKept,
		FailbackDelay:    s.failback,
		MinReady:         s.minReady,
		MinReadyRecovery: s.recovery,
		WarmStandby:      s.standbys,
		FastFailover:     s.fast,
		MaxFailbackDelay: s.longestFailback,
	}
	for i, name := range priorities {
		config.Children[name] = prioritymodel.Child{Policy: name}
		if i < len(truth) && truth[i].addresses() < 2 {
			config.Single = append(config.Single, name)
		}
	}
	return config
}

// modelled reports whether the model of gRFC A56 can predict the priority in use. It cannot if the
// result depends on a random number or on the order of two simultaneous events. detects is set if
// the channel has ever detected outliers.
func (s settings) modelled(detects bool) bool {
	return s.jitter == 0 && (s.failback == 0 || s.minReady == 0 && !detects)
}

// patience is the longest time after the last event until the right priority is in use.
func (s settings) patience(priorities int) time.Duration {
	if s.near.prefer == "balance" { // zones fail one after another
		priorities += 2 * int(s.longestAttempt()/s.failover)
	}
	return time.Duration(priorities)*s.failover + s.keepalive + s.keepaliveTimeout + s.longestAttempt() + s.longestBackoff() + 5*time.Second
}

// rest returns how long failback delays and slow start may last after patience.
func (s settings) rest() time.Duration {
	return max(s.failback, s.longestFailback) + s.jitter + s.slowStart
}

// choosePickFirst sets pickFirst. It unsets the options that cannot be combined with it.
func (s *settings) choosePickFirst() {
	s.pickFirst, s.slowStart = true, 0
	if s.near.prefer == "balance" {
		s.near = nearby{}
	}
	if s.detects == "true" {
		s.detects = ""
	}
}
