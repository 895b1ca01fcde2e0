package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// failuresToNotice is how many calls to each endpoint of a priority may fail until the channel must
// have noticed.
const failuresToNotice = 5

// judge checks one rule: if calls to any priority succeed, calls to the priority in use succeed. It
// looks at the state of the backends and the results of calls, but never at what the policies
// decided. Callers of its methods hold World.mu.
//
// Calls to a priority succeed if at least one of its endpoints works and has been reachable for
// settings.maxConnectTime. The judge doesn't care which endpoint of a priority gets the calls.
type judge struct {
	w          *World
	priorities map[string]*priorityState // the key is made of the priority's index and endpoints
	order      []string
	byEndpoint map[string]*priorityState // nil for an endpoint in several priorities
	calls      int

	lastChange moment // when a backend or the list of priorities last changed, or a failure was last noticed
	inUse      string
	otherKey   string // key of another priority that got the last call; "" if inUse got it
	otherCalls int    // how many calls in a row otherKey got
	sentTo     []string
}

type moment struct {
	time  time.Time
	calls int
}

type priorityState struct {
	key            string
	endpoints      []string
	createdAt      time.Time
	changed        moment
	failures       map[string]int
	failedAt       map[string]time.Time // when an endpoint's failures reached failuresToNotice
	failureNoticed moment               // when that was true for all reachable endpoints, or zero
	failedLater    int
	refusedLater   bool // some of those calls failed with RESOURCE_EXHAUSTED
	reported       int
}

func newJudge(w *World) *judge { return &judge{w: w, priorities: make(map[string]*priorityState)} }

func (j *judge) now() moment { return moment{time.Now(), j.calls} }

func (j *judge) recordChange() { j.lastChange = j.now() }

func (j *judge) updated(truth EndpointSet) {
	// If neither index nor endpoints of a priority have changed, we keep its results.
	byEndpoint := make(map[string]*priorityState)
	tiers := make(map[string]*priorityState)
	var order []string
	for i, tier := range truth {
		endpoints := tier.Serving()
		slices.Sort(endpoints)
		key := fmt.Sprintf("p%d: %s", i, strings.Join(endpoints, " "))
		s := j.priorities[key]
		if s == nil {
			s = &priorityState{key: key, endpoints: endpoints, createdAt: time.Now()}
			s.clearResults(j.now())
			for _, address := range endpoints {
				j.w.conditions[address].forgetSuccesses() // these calls may have been another priority's
			}
		}
		tiers[key] = s
		order = append(order, key)
		for _, address := range endpoints {
			if byEndpoint[address] = s; j.w.inSeveralPriorities(address) {
				byEndpoint[address] = nil // we can't tell which priority got the call
			}
		}
	}
	if !slices.Equal(j.order, order) {
		j.recordChange()
	}
	j.priorities, j.byEndpoint, j.order = tiers, byEndpoint, order
}

func (j *judge) backendChanged(address string) {
	c := j.w.conditions[address]
	c.behaviourChangedAt = time.Now()
	c.forgetSuccesses()
	if s := j.byEndpoint[address]; s != nil {
		if s.reported > 0 {
			j.w.Log.Event("%d calls to %s were blamed", s.reported, s.key)
		}
		s.clearResults(j.now())
	}
	j.recordChange()
}

func (s *priorityState) clearResults(now moment) {
	s.changed, s.failureNoticed, s.failedLater, s.refusedLater, s.reported = now, moment{}, 0, false, 0
	s.failures, s.failedAt = make(map[string]int), make(map[string]time.Time)
}

func (j *judge) sent(address string) {
	j.sentTo = append(j.sentTo, address)
	if len(j.sentTo) > 100 {
		j.sentTo = j.sentTo[50:]
	}
	s := j.byEndpoint[address]
	switch {
	case s == nil:
		return
	case s.key == j.inUse:
		j.otherKey, j.otherCalls = "", 0
		return
	case s.key != j.otherKey:
		j.otherKey, j.otherCalls = s.key, 0
	}
	if j.otherCalls++; j.otherCalls < 3 {
		return
	}
	j.inUse, j.otherKey, j.otherCalls = s.key, "", 0
}

func (j *judge) callEnded(c *call, address string, sentAt time.Time, err error) {
	s := j.byEndpoint[address]
	switch {
	case err == nil:
	case isShed(err):
		j.w.checkShed()
	case address == "":
		j.callNotSent(c, err)
	case s == nil || s.works(j.w) || !sentAt.After(s.changed.time):
	case s.addFailure(j.w, address, j.now()):
		j.recordChange()
	case !s.failureNoticed.time.IsZero() && sentAt.After(s.failureNoticed.time) && sentAt.After(s.failedAt[address]) && s.failures[address] > failuresToNotice && !j.mayFail(s, moment{sentAt, c.number}, err):
		j.reportFailure(s, sentAt, err)
	}
}

// addFailure returns true if this is the call by which the channel must have noticed that the whole
// priority fails.
func (s *priorityState) addFailure(w *World, address string, now moment) bool {
	if s.failures[address]++; s.failures[address] == failuresToNotice {
		s.failedAt[address] = now.time
	}
	undecided := func(address string) bool { return w.reachable(address) && s.failedAt[address].IsZero() }
	if !s.failureNoticed.time.IsZero() || slices.ContainsFunc(s.endpoints, undecided) {
		return false
	}
	s.failureNoticed = now
	return true
}

func (s *priorityState) works(w *World) bool {
	return slices.ContainsFunc(s.endpoints, func(address string) bool {
		c := *w.conditions[address]
		if c.link.Refuse && !w.network.Connected(address).IsZero() {
			c.link.Refuse = false // existing connections still work
		}
		return c.works()
	})
}

func (j *judge) reportFailure(s *priorityState, sentAt time.Time, err error) {
	r, why := j.findAnswering(sentAt)
	if r == "" {
		return
	}
	if s.reported++; s.reported == 1 {
		j.w.Log.Break(ruleAnswers, "a call sent to %s failed: %v; the failure was detectable %v and %d calls ago, and %s %s", s.key, err, time.Since(s.failureNoticed.time), j.calls-s.failureNoticed.calls, r, why)
	}
}

// findAnswering returns "" if there's no such endpoint.
func (j *judge) findAnswering(since time.Time) (address, reason string) {
	for _, r := range j.priorities {
		if j.w.looksFull(r.endpoints) {
			continue
		}
		for _, address := range r.endpoints {
			c := j.w.conditions[address]
			switch {
			case j.byEndpoint[address] == nil:
			case !c.works() || since.Sub(c.behaviourChangedAt) < j.w.settings.maxConnectTime() || since.Sub(r.changed.time) < 0 || j.cutShort(c, since) || j.mayBeCold(c, since):
			case j.isProven(r, c, address, since):
				return address, "has been connected and answered all the time"
			case since.Sub(j.lastChange.time) > j.maxFailoverTime(r) && j.calls-j.lastChange.calls > j.maxTrialCalls(r):
				return address, "could be reached all the time"
			}
		}
	}
	return "", ""
}

func (j *judge) cutShort(c *condition, when time.Time) bool {
	return j.w.pair != nil && when.Sub(c.resetAt) < 3*j.w.pair.latency
}

// looksFull is true if an endpoint refuses calls, which never ejects it. The client calls too seldom
// to see that the others don't: after ten seconds it forgets what each has answered.
func (w *World) looksFull(endpoints []string) bool {
	return w.pair != nil && slices.ContainsFunc(endpoints, func(address string) bool {
		c := w.conditions[address]
		return c.reachable() && c.code == codes.ResourceExhausted
	})
}

// mayBeCold is true if the endpoint's connections have been reset and it takes a second to
// reconnect. Its priority then gets a probe first, and few calls until its share has grown.
func (j *judge) mayBeCold(c *condition, when time.Time) bool {
	const delays = 5 // of the link, with a handshake and the settings of HTTP/2
	return delays*j.w.link.Delay >= time.Second && when.Sub(c.resetAt) < j.w.maxRecoveryTime()
}

// isProven checks that the endpoint has been connected for two seconds. If it has succeeded since
// its last failure, it must also have succeeded in a later interval of outlier detection, and one
// more interval must have passed. Otherwise, every endpoint of the priority that has ever failed a
// call must have succeeded in a later one.
func (j *judge) isProven(r *priorityState, c *condition, address string, when time.Time) bool {
	begin := j.w.network.Connected(address)
	if begin.IsZero() || when.Sub(begin) < 2*time.Second {
		return false
	}
	if !c.firstSuccess.IsZero() {
		if j.w.settings.overflow {
			return when.Sub(c.firstSuccess) > j.w.maxRecoveryTime()
		}
		return !c.laterSuccess.IsZero() && when.Sub(c.laterSuccess) > detectionInterval+2*time.Second
	}
	return !slices.ContainsFunc(r.endpoints, func(other string) bool {
		c := j.w.conditions[other]
		return !c.lastFailure.IsZero() && (!c.lastSuccess.After(c.lastFailure) || c.lastSuccess.Before(r.createdAt))
	})
}

func (j *judge) maxFailoverTime(r *priorityState) time.Duration {
	return j.w.settings.maxFailoverTime(len(j.priorities)) + j.w.maxRecoveryTime() + time.Duration(len(r.endpoints)+2)*detectionInterval
}

// maxTrialCalls returns how many calls it may take to try each endpoint of a priority. Only one in
// ten calls is a trial.
func (j *judge) maxTrialCalls(r *priorityState) int { return 11 * (len(r.endpoints) + 1) }

func (j *judge) callNotSent(c *call, err error) {
	if c.start.Sub(j.lastChange.time) < j.w.settings.maxFailoverTime(len(j.priorities)) || j.calls-j.lastChange.calls < j.maxTrialCalls(&priorityState{endpoints: j.w.addresses[:1]}) {
		return
	}
	if r, why := j.findAnswering(c.start); r != "" {
		j.w.Log.Break(ruleAnswers, "a call was not sent: %v; the last event was %v ago, and %s %s", err, time.Since(j.lastChange.time), r, why)
	}
}

// inSeveralPriorities reports whether either of the last two updates has an endpoint more than
// once.
func (w *World) inSeveralPriorities(address string) bool {
	for _, truth := range []EndpointSet{w.knownTruth, w.previousTruth} {
		n := 0
		for _, known := range truth.serving() {
			if known == address {
				n++
			}
		}
		if n > 1 {
			return true
		}
	}
	return false
}
