package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// noticed is the number of consecutive failures of each endpoint after which a priority counts as
// failing.
const noticed = 5

// judge checks one rule: if any priority answers, the one in use answers. It knows the state of the
// backends and the results of calls, but no decision of the policies. Callers of its methods hold
// World.mu.
//
// A priority answers if one of its endpoints has been reachable for settings.longEnough and calls
// to it succeed. The judge does not check the choice among the endpoints of a priority.
type judge struct {
	w     *World
	tiers map[string]*tierState // by the endpoints of the priority
	order []string              // the keys of tiers, the highest priority first
	of    map[string]*tierState // by endpoint
	made  int

	changed moment // the last event, or when a failure was last noticed
	inUse   string // the key of the priority that gets the calls
	other   string // the key of the priority that got the last calls, if that was another one
	row     int    // how many calls other got
	moves   int    // since the last event
	resets  int
	away    time.Time // until then, calls may go elsewhere, because the priority in use reconnects
	to      []string
}

type moment struct {
	at   time.Time
	made int
}

// tierState has the results of the calls to one priority.
type tierState struct {
	key       string
	endpoints []string
	created   time.Time
	since     moment // when the condition of one of its endpoints last changed
	failures  map[string]int
	known     map[string]time.Time // when an endpoint had failed often enough
	noticed   moment               // when all connected endpoints had failed often enough; zero before that
	slow, few tokens               // allowances for trial calls
	blamed    int
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func newJudge(w *World) *judge { return &judge{w: w, tiers: make(map[string]*tierState)} }

func (j *judge) now() moment { return moment{time.Now(), j.made} }

// happen records an event after which calls may fail for a while.
func (j *judge) happen() { j.changed, j.moves, j.resets = j.now(), 0, 0 }

// updated handles an update of the channel. A priority whose number and endpoints are the same as
// before keeps its recorded results.
func (j *judge) updated(truth Truth) {
	of := make(map[string]*tierState)
	tiers := make(map[string]*tierState)
	var order []string
	for i, tier := range truth {
		endpoints := tier.Serving()
		slices.Sort(endpoints)
		key := fmt.Sprintf("p%d: %s", i, strings.Join(endpoints, " "))
		s := j.tiers[key]
		if s == nil {
			s = &tierState{key: key, endpoints: endpoints, created: time.Now()}
			s.turn(j.now())
			for _, address := range endpoints {
				j.w.conditions[address].forget() // another priority may have shown that the endpoint answers
			}
		}
		tiers[key] = s
		order = append(order, key)
		for _, address := range endpoints {
			if of[address] = s; j.w.shared(address) {
				of[address] = nil // a call to it may belong to either priority
			}
		}
	}
	if !slices.Equal(j.order, order) {
		j.happen()
	}
	j.tiers, j.of, j.order = tiers, of, order
}

func (j *judge) turned(address string) {
	c := j.w.conditions[address]
	c.turned = time.Now()
	c.forget()
	if s := j.of[address]; s != nil {
		if s.blamed > 0 {
			j.w.Log.Event("%d calls to %s were blamed", s.blamed, s.key)
		}
		s.turn(j.now())
	}
	j.happen()
}

func (s *tierState) turn(now moment) {
	s.since, s.noticed, s.blamed = now, moment{}, 0
	s.failures, s.known = make(map[string]int), make(map[string]time.Time)
	s.slow, s.few = tokens{mostTokens, now}, tokens{mostTokens, now}
}

func (j *judge) sent(address string) {
	if time.Now().After(j.away) {
		j.to = append(j.to, address)
	}
	if len(j.to) > 100 {
		j.to = j.to[50:]
	}
	s := j.of[address]
	switch {
	case s == nil:
		return
	case s.key == j.inUse:
		j.other, j.row = "", 0
		return
	case s.key != j.other:
		j.other, j.row = s.key, 0
	}
	if j.row++; j.row < 3 {
		return
	}
	j.inUse, j.other, j.row = s.key, "", 0
	if j.moves++; j.moves == j.mostMoves()+1 {
		j.w.Log.Break(ruleFro, "the calls have moved %d times since the last event, %v ago", j.moves, time.Since(j.changed.at))
	}
}

// mostMoves returns how often calls may move to another priority. They may leave a priority and
// return when timers fire, when an endpoint connects later, and when connections end.
func (j *judge) mostMoves() int {
	pairs := len(j.tiers) + j.resets
	for address := range j.of {
		if j.w.network.Connected(address).After(j.changed.at) {
			pairs++
		}
	}
	return 2 * pairs
}

// ended records the result of a call. to is "" if the call was not sent.
func (j *judge) ended(c *call, to string, sentAt time.Time, err error) {
	s := j.of[to]
	switch {
	case err == nil:
	case to == "":
		j.unsent(c, err)
	case s == nil || s.works(j.w) || !sentAt.After(s.since.at):
	case s.fails(j.w, to, j.now()):
		j.happen()
	case !s.noticed.at.IsZero() && sentAt.After(s.noticed.at) && sentAt.After(s.known[to]) && s.failures[to] > noticed && !s.trial(moment{sentAt, c.made}):
		j.blame(s, sentAt, err)
	}
}

// fails counts a failed call. It returns true for the call that shows that all endpoints fail.
func (s *tierState) fails(w *World, address string, now moment) bool {
	if s.failures[address]++; s.failures[address] == noticed {
		s.known[address] = now.at
	}
	unknown := func(address string) bool { return w.connects(address) && s.known[address].IsZero() }
	if !s.noticed.at.IsZero() || slices.ContainsFunc(s.endpoints, unknown) {
		return false
	}
	s.noticed = now
	return true
}

func (s *tierState) works(w *World) bool {
	return slices.ContainsFunc(s.endpoints, func(address string) bool {
		c := *w.conditions[address]
		if c.link.Refuse && !w.network.Connected(address).IsZero() {
			c.link.Refuse = false // existing connections still work
		}
		return c.works()
	})
}

func (j *judge) blame(s *tierState, sentAt time.Time, err error) {
	r, why := j.answering(sentAt)
	if r == "" {
		return
	}
	if s.blamed++; s.blamed == 1 {
		j.w.Log.Break(ruleAnswers, "a call sent to %s failed: %v; the failure was detectable %v and %d calls ago, and %s %s", s.key, err, time.Since(s.noticed.at), j.made-s.noticed.made, r, why)
	}
}

// answering returns an endpoint that the channel must have known to answer at a given time, and the
// reason why it must have known this. It returns "" if there is none.
func (j *judge) answering(since time.Time) (address, why string) {
	for _, r := range j.tiers {
		for _, address := range r.endpoints {
			c := j.w.conditions[address]
			switch {
			case j.of[address] == nil:
			case !c.works() || since.Sub(c.turned) < j.w.settings.longEnough() || since.Sub(r.since.at) < 0 || j.cutShort(c, since):
			case j.proven(r, c, address, since):
				return address, "has been connected and answered all the time"
			case since.Sub(j.changed.at) > j.patience(r) && j.made-j.changed.made > j.calls(r):
				return address, "could be reached all the time"
			}
		}
	}
	return "", ""
}

// cutShort reports whether resets of connections may end all calls to an endpoint early.
func (j *judge) cutShort(c *condition, at time.Time) bool {
	return j.w.pair != nil && at.Sub(c.reset) < 3*j.w.pair.takes
}

// proven reports whether the channel must have known at a given time that an endpoint answers. The
// endpoint must have been connected for two seconds. If it has answered after a failure, it must
// have answered again in a later interval of outlier detection, and another interval must have
// passed. Otherwise, each endpoint of the priority that has failed a call must have answered a
// later one.
func (j *judge) proven(r *tierState, c *condition, address string, at time.Time) bool {
	begin := j.w.network.Connected(address)
	if begin.IsZero() || at.Sub(begin) < 2*time.Second {
		return false
	}
	if !c.proven.IsZero() {
		return !c.shown.IsZero() && at.Sub(c.shown) > byTarget.interval+2*time.Second
	}
	return !slices.ContainsFunc(r.endpoints, func(other string) bool {
		c := j.w.conditions[other]
		return !c.failed.IsZero() && (!c.answered.After(c.failed) || c.answered.Before(r.created))
	})
}

// patience returns how long it may take after an event until another priority gets the calls.
// Timers must fire, the priority must connect, and outlier detection must try each of its
// endpoints.
func (j *judge) patience(r *tierState) time.Duration {
	return j.w.settings.patience(len(j.tiers)) + time.Duration(len(r.endpoints)+2)*byTarget.interval
}

// calls returns how many calls the channel may need to try each endpoint of a priority: eleven for
// each trial.
func (j *judge) calls(r *tierState) int { return 11 * (len(r.endpoints) + 1) }

func (j *judge) unsent(c *call, err error) {
	if c.start.Sub(j.changed.at) < j.w.settings.patience(len(j.tiers)) || j.made-j.changed.made < j.calls(&tierState{endpoints: j.w.addresses[:1]}) {
		return
	}
	if r, why := j.answering(c.start); r != "" {
		j.w.Log.Break(ruleAnswers, "a call was not sent: %v; the last event was %v ago, and %s %s", err, time.Since(j.changed.at), r, why)
	}
}
