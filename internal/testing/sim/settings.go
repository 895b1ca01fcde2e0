package sim

import (
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/prioritymodel"
)

// settings are the options of a channel that a seed draws. They are written into its
// target, as a user would.
type settings struct {
	failover, failback, slowStart time.Duration

	// longestFailback is not less than failback: the delay doubles while a tier flaps.
	longestFailback time.Duration
	// jitter is the window of a random part, which A56's model is not told.
	jitter time.Duration

	minReady, recovery float64 // recovery is not less than minReady

	// detects is the target's outlierDetection: "true", "false", or "" where it says nothing,
	// so that each cluster says what it wants.
	detects string

	// pickFirst sends the calls of each locality to one of its endpoints.
	pickFirst bool

	standbys int
	fast     bool // leave at once what has lost its connections

	near nearby // what is preferred
}

// The mark and the recovery mark that are drawn. No priority of a world has exactly as
// much: a sum that is rounded otherwise would then be another answer.
var (
	minReadies = []float64{0.353, 0.553}
	recoveries = []float64{0, 0.797}
)

// choosePlace draws what is preferred.
func (s *settings) choosePlace(near nearby, r *rand.Rand) {
	if s.near = near; s.near.prefer == "balance" {
		s.chooseBalance(r)
	}
}

// newSettings draws options: those of gRFC A56, and nothing else, for every second world.
func newSettings(r *rand.Rand) settings {
	s := settings{failover: failoverTime}
	if r.IntN(2) == 0 {
		return s
	}
	if r.IntN(3) == 0 {
		s.failover = time.Duration(5+15*r.IntN(2)) * time.Second
	}
	if r.IntN(3) == 0 {
		s.failback = time.Duration(5+r.IntN(60)) * time.Second
		s.longestFailback = s.failback * time.Duration(1+r.IntN(4))
		s.jitter = time.Duration(r.IntN(4)/3*20) * time.Second
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

// within returns a target with the options as its parameters.
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

// model returns what A56's model is to know. Priority sees taps below it and no pick_first: it
// takes a child of one endpoint for one that can hold one connection.
func (s settings) model(t tree, truth Truth) prioritymodel.Config {
	priorities := t.priorities
	config := prioritymodel.Config{
		Children:         make(map[string]prioritymodel.Child),
		Priorities:       priorities,
		Of:               t.of,
		FailoverTimeout:  s.failover,
		ChildRetention:   15 * time.Minute,
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

// modelled says whether A56's model can tell which priority is in use: not where that depends
// on a random number, nor where it depends for long on which of two things at one moment was
// first, such as a priority of which too little is READY for an instant. detects is whether
// the channel has ever detected outliers.
func (s settings) modelled(detects bool) bool {
	return s.jitter == 0 && (s.failback == 0 || s.minReady == 0 && !detects)
}

// patience is how long at most the right one of some priorities takes to be in use again
// after the last event.
func (s settings) patience(priorities int) time.Duration {
	if s.near.prefer == "balance" { // zones are found out to be gone one after the other
		priorities += 2 * int(attemptTime/s.failover)
	}
	return time.Duration(priorities)*s.failover + keepaliveTime + keepaliveTimeout + attemptTime + longestBackoff + 5*time.Second
}

// rest is how long after that nothing changes by itself any more, but for ejections.
func (s settings) rest() time.Duration {
	return max(s.failback, s.longestFailback) + s.jitter + s.slowStart
}

// choosePickFirst sets pickFirst, which does not go together with outlierDetection=true, nor
// with slowStart.
func (s *settings) choosePickFirst() {
	s.pickFirst, s.slowStart = true, 0
	if s.near.prefer == "balance" {
		s.near = nearby{}
	}
	if s.detects == "true" {
		s.detects = ""
	}
}
