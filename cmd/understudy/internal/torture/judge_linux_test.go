package torture

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	ruleDeadline = "no call lasts past its deadline"
	ruleHealthy  = "no call fails on an endpoint that works"
	ruleWait     = "no call waits while an endpoint works and the timers have run"
	rulePriority = "the highest priority that works is in use once the timers have run"
	ruleCore     = "calls succeed on what is left once the timers have run"
	ruleEnd      = "calls succeed on what is published when all faults have ended"
	ruleProcess  = "no process ends by itself"
	ruleRace     = "no data race"
	ruleLeak     = "closed channels leave no goroutines and no files"
	ruleMemory   = "memory is bounded"
)

// trouble is a period in which calls may fail at one host, or at all hosts.
type trouble struct {
	from, to time.Duration // to is forever until the trouble has ended
	kind     kind
}

const forever = time.Duration(1<<63 - 1)

// margin is the time after the end of a fault in which calls may still fail.
const margin = 3 * time.Second

type channelState struct {
	name        string
	recommended bool
	sees        func(content) content // the part of the published endpoints that its source reports
	calls       int
	failed      int
	recent      []record
}

// judge checks calls against the rules. Its methods are safe for concurrent use.
type judge struct {
	log      *eventLog
	core     string
	failover time.Duration

	mu        sync.Mutex
	troubles  map[string][]*trouble // by host; "" means all hosts
	published content
	changed   time.Duration
	channels  []*channelState
	pulses    []record // pulses of all processes that show a delay
	waiting   []record // calls that ended after the client's last pulse
	judged    int
	left      *record
}

// begin records that a fault begins at host h, or at all hosts if h is "".
func (j *judge) begin(h string, k kind) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.troubles[h] = append(j.troubles[h], &trouble{now(), forever, k})
}

// end records that the fault at a host has ended. After packet loss, TCP may take up to twice the
// duration of the loss to retransmit.
func (j *judge) end(h string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := j.troubles[h]
	last := all[len(all)-1]
	last.to = now() + margin
	if last.kind.packets || last.kind.on == onClient {
		last.to += now() - last.from
	}
}

func (j *judge) publish(c content) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.published, j.changed = c, now()
}

// at returns the troubles of a host that overlap a period.
func (j *judge) at(h string, from, to time.Duration) (all []*trouble) {
	for _, t := range append(slices.Clone(j.troubles[h]), j.troubles[""]...) {
		if t.from <= to && from <= t.to {
			all = append(all, t)
		}
	}
	return all
}

// delay returns the longest scheduling delay that a process has measured in a period.
func (j *judge) delay(from, to time.Duration) (longest time.Duration) {
	for _, p := range j.pulses {
		if p.End >= from && p.End-p.Delay-time.Second <= to {
			longest = max(longest, p.Delay)
		}
	}
	return longest
}

// Each time limit is extended by busyFactor times the longest scheduling delay.
const busyFactor = 20

// Calls near a scheduling delay of more than tooSlow are not judged.
const tooSlow = time.Second

// slowFor is how long calls are not judged after a delay of more than tooSlow.
const slowFor = 30 * time.Second

// heard handles a record of the client. It judges a call only after the client's next pulse, which
// shows how busy the machine was.
func (j *judge) heard(r record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch r.Kind {
	case pulse:
		j.measured(r)
		ended := j.waiting
		j.waiting = nil
		for _, call := range ended {
			j.called(call)
		}
	case leftOff:
		j.left = &r
	case inUse:
		j.log.event("%s: in use: %s", j.channels[r.Channel].name, r.Text)
	default:
		j.waiting = append(j.waiting, r)
	}
}

// slow handles a pulse of a process other than the client.
func (j *judge) slow(r record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.measured(r)
}

// measured keeps a pulse if it shows a delay. The caller must hold the lock.
func (j *judge) measured(r record) {
	if r.Delay > 20*time.Millisecond {
		j.pulses = append(j.pulses, r)
	}
}

func (j *judge) called(r record) {
	c := j.channels[r.Channel]
	c.calls++
	if c.recent = append(c.recent, r); len(c.recent) > 2*calmCalls {
		c.recent = slices.Delete(c.recent, 0, calmCalls)
	}
	to := withoutPort(r.To)
	if r.Failed {
		c.failed++
		j.log.repeat(fmt.Sprintf("%s: a call (%s) to %q fails: %s: %s", c.name, r.Kind, to, r.Code, r.Text))
	}
	if j.delay(r.Start-slowFor, r.End) > tooSlow {
		return
	}
	j.judged++
	deadline := map[string]time.Duration{plain: plainDeadline, patient: patientDeadline, stream: streamDeadline}[r.Kind]
	slow := j.delay(r.Start, r.End)
	for _, t := range j.at("", r.Start, r.End) {
		if t.kind.name == "client stopped" {
			slow += min(t.to, r.End) - t.from
		}
	}
	if took := r.End - r.Start; took > deadline+2*time.Second+busyFactor*slow {
		j.log.broke(ruleDeadline, "%s: a call (%s) took %v, and its deadline was %v", c.name, r.Kind, took, deadline)
	}
	switch {
	case !r.Failed:
		j.checkPriority(c, r)
		j.checkWait(c, r, r.Sent-r.Start)
	case r.To == "":
		j.checkUnsent(c, r)
	default:
		late := r.Code == "DeadlineExceeded" && (r.Sent-r.Start > deadline/2 || slow > 100*time.Millisecond)
		if len(j.at(to, r.Start-margin, r.End)) == 0 && !late {
			j.log.broke(ruleHealthy, "%s: a call (%s) to %s, which had no fault, failed after %v, sent after %v, scheduler delay %v: %s: %s",
				c.name, r.Kind, to, r.End-r.Start, r.Sent-r.Start, slow, r.Code, r.Text)
		}
	}
}

// calmCalls is the number of consecutive successful calls after which a channel is calm.
const calmCalls = 30

func (c *channelState) hosts(published content) content { return c.sees(published) }

// settled returns the time after which calls of a channel must succeed. ok is false if a current
// fault may prevent this until it ends.
func (j *judge) settled(c *channelState, at time.Duration) (since time.Duration, ok bool) {
	since = j.changed
	above := j.aboveCore(c)
	bound := time.Duration(len(above)-1)*j.failover + loudTime
	loud, sick := true, false // loud: all hosts refused connections at once, so the channel has waited for no timer
	for _, h := range above.all() {
		for _, t := range j.at(h, 0, at) {
			if t.to >= at-bound-noticeTime {
				loud, sick = loud && t.kind.loud, sick || t.kind.sick
			}
			if t.to < at {
				since = max(since, t.to)
				continue
			}
			since = max(since, t.from)
			if t.kind.sick && !c.recommended || h == j.core {
				return 0, false
			}
		}
	}
	switch {
	case loud:
		bound = loudTime
	case sick && c.recommended:
		bound += noticeTime
	}
	return since + bound, true
}

// aboveCore returns the hosts of a channel, from the first priority to that of the core. In each of
// them but the last, the channel waits for at most one timer.
func (j *judge) aboveCore(c *channelState) content {
	tiers := c.hosts(j.published)
	return tiers[:1+slices.IndexFunc(tiers, func(tier []string) bool { return slices.Contains(tier, j.core) })]
}

// loudTime limits the time until a channel leaves endpoints that refuse connections. For other
// faults, it is added to the timers.
const loudTime = 4 * time.Second

// noticeTime limits the time until keepalive or outlier detection notices a fault.
const noticeTime = 15*time.Second + 5*time.Second

func (j *judge) checkUnsent(c *channelState, r record) {
	j.checkWait(c, r, r.End-r.Start)
	slow := busyFactor * j.delay(r.Start-20*time.Second, r.End)
	if since, ok := j.settled(c, r.End); ok && r.Start > since+slow {
		j.log.broke(ruleWait, "%s: a call (%s) was never sent although %s works and the timers have run: %s: %s", c.name, r.Kind, j.core, r.Code, r.Text)
	}
}

// checkWait judges how long a wait-for-ready call has waited. If a backend keeps connections and
// fails calls, each attempt of the call may have waited.
func (j *judge) checkWait(c *channelState, r record, waited time.Duration) {
	above := j.aboveCore(c)
	most := time.Duration(len(above)-1)*j.failover + loudTime
	for _, h := range above.all() {
		for _, t := range j.at(h, r.Start-noticeTime, r.End) {
			if t.kind.sick || h == j.core {
				return
			}
		}
	}
	if r.Kind == patient && waited > most+busyFactor*j.delay(r.Start-20*time.Second, r.End) {
		j.log.broke(ruleWait, "%s: a call waited %v although %s worked all the time, want at most %v: %s: %s", c.name, waited, j.core, most, r.Code, r.Text)
	}
}

func (j *judge) checkPriority(c *channelState, r record) {
	to, tiers := withoutPort(r.To), c.hosts(j.published)
	for i, tier := range tiers {
		if slices.Contains(tier, to) {
			return
		}
		since := j.changed
		sum := time.Duration(0) // duration of all faults, which bounds the backoff
		for _, h := range tier {
			for _, t := range j.at(h, 0, r.Sent) {
				since = max(since, t.to)
				sum += min(t.to, r.Sent) - t.from
			}
		}
		if since == forever {
			continue
		}
		bound := j.returnTime(c, sum) + busyFactor*j.delay(since, r.Sent)
		if r.Sent > since+bound {
			j.log.broke(rulePriority, "%s: a call went to %s although all of priority %d has worked for %v, want at most %v", c.name, to, i, r.Sent-since, bound)
			return
		}
	}
}

// returnTime bounds the time until calls are back after faults with a total duration of sum.
func (j *judge) returnTime(c *channelState, sum time.Duration) time.Duration {
	bound := 40*time.Second + min(2*sum, 144*time.Second) // a connection attempt and a DNS lookup, and the backoff, which grows by 1.6 with a jitter of 0.2
	if c.recommended {
		bound = 40*time.Second + 12*time.Second + 50*time.Second + ejection
	}
	return bound + j.failover
}

const ejection = 90 * time.Second

func (j *judge) totals() (calls, failed, judged int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.channels {
		calls += c.calls
		failed += c.failed
	}
	return calls, failed, j.judged
}
