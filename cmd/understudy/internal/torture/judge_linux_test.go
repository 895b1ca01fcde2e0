//go:build torture

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

// faultPeriod is a period in which calls to one host, or to all hosts, may fail.
type faultPeriod struct {
	from, to time.Duration // to is forever until the fault has ended
	kind     faultKind
}

const forever = time.Duration(1<<63 - 1)

// margin is the time after the end of a fault in which calls may still fail.
const margin = 3 * time.Second

type channelState struct {
	name        string
	recommended bool
	visible     func(content) content // returns those of the published endpoints that the channel's source reports
	calls       int
	failed      int
	recent      []record
}

// judge checks calls against the rules. Its methods are safe for concurrent use.
type judge struct {
	log         *eventLog
	healthyHost string
	failover    time.Duration

	mu        sync.Mutex
	periods   map[string][]*faultPeriod // by host; "" means all hosts
	published content
	changedAt time.Duration
	channels  []*channelState
	pulses    []record // pulses with a delay, from all processes
	unjudged  []record // calls that ended after the client's last pulse
	judged    int
	endRecord *record
}

// begin records that a fault begins at host h, or at all hosts if h is "".
func (j *judge) begin(h string, k faultKind) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.periods[h] = append(j.periods[h], &faultPeriod{now(), forever, k})
}

// end records that the fault at a host has ended. After packet loss, TCP may take up to twice the
// duration of the loss to retransmit.
func (j *judge) end(h string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	periods := j.periods[h]
	last := periods[len(periods)-1]
	last.to = now() + margin
	if last.kind.losesPackets || last.kind.subjectKind == subjectClient {
		last.to += now() - last.from
	}
}

func (j *judge) publish(c content) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.published, j.changedAt = c, now()
}

// periodsAt returns the fault periods of a host that overlap the given period.
func (j *judge) periodsAt(h string, from, to time.Duration) (all []*faultPeriod) {
	for _, t := range append(slices.Clone(j.periods[h]), j.periods[""]...) {
		if t.from <= to && from <= t.to {
			all = append(all, t)
		}
	}
	return all
}

// delay returns the longest scheduling delay that any process has measured in a period.
func (j *judge) delay(from, to time.Duration) (longest time.Duration) {
	for _, p := range j.pulses {
		if p.End >= from && p.End-p.Delay-time.Second <= to {
			longest = max(longest, p.Delay)
		}
	}
	return longest
}

// busyFactor times the longest scheduling delay is added to each time limit.
const busyFactor = 20

// maxDelay is the scheduling delay above which calls are not judged.
const maxDelay = time.Second

// slowPeriod is how long calls are not judged after a delay of more than maxDelay.
const slowPeriod = 30 * time.Second

// addRecord handles a record of the client. It judges a call only after the client's next pulse,
// which shows how busy the machine was.
func (j *judge) addRecord(r record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch r.Kind {
	case kindPulse:
		j.keepPulse(r)
		ended := j.unjudged
		j.unjudged = nil
		for _, call := range ended {
			j.judgeCall(call)
		}
	case kindEnd:
		j.endRecord = &r
	case kindInUse:
		j.log.event("%s: in use: %s", j.channels[r.Channel].name, r.Text)
	default:
		j.unjudged = append(j.unjudged, r)
	}
}

// addPulse handles a pulse of a process other than the client.
func (j *judge) addPulse(r record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keepPulse(r)
}

// keepPulse keeps a pulse if it shows a delay. The caller must hold the lock.
func (j *judge) keepPulse(r record) {
	if r.Delay > 20*time.Millisecond {
		j.pulses = append(j.pulses, r)
	}
}

func (j *judge) judgeCall(r record) {
	c := j.channels[r.Channel]
	c.calls++
	if c.recent = append(c.recent, r); len(c.recent) > 2*calmCalls {
		c.recent = slices.Delete(c.recent, 0, calmCalls)
	}
	endpoint := withoutPort(r.To)
	if r.Failed {
		c.failed++
		j.log.eventRepeated(fmt.Sprintf("%s: a call (%s) to %q fails: %s: %s", c.name, r.Kind, endpoint, r.Code, r.Text))
	}
	if j.delay(r.Start-slowPeriod, r.End) > maxDelay {
		return
	}
	j.judged++
	deadline := map[string]time.Duration{plainCall: plainDeadline, waitForReadyCall: waitForReadyDeadline, streamCall: streamDeadline}[r.Kind]
	slow := j.delay(r.Start, r.End)
	for _, t := range j.periodsAt("", r.Start, r.End) {
		if t.kind.name == "client stopped" {
			slow += min(t.to, r.End) - t.from
		}
	}
	if elapsed := r.End - r.Start; elapsed > deadline+2*time.Second+busyFactor*slow {
		j.log.ruleBroken(ruleDeadline, "%s: a call (%s) took %v, and its deadline was %v", c.name, r.Kind, elapsed, deadline)
	}
	switch {
	case !r.Failed:
		j.checkPriority(c, r)
		j.checkWait(c, r, r.Sent-r.Start)
	case r.To == "":
		j.checkUnsent(c, r)
	default:
		late := r.Code == "DeadlineExceeded" && (r.Sent-r.Start > deadline/2 || slow > 100*time.Millisecond)
		if len(j.periodsAt(endpoint, r.Start-margin, r.End)) == 0 && !late {
			j.log.ruleBroken(ruleHealthy, "%s: a call (%s) to %s, which had no fault, failed after %v, sent after %v, scheduler delay %v: %s: %s",
				c.name, r.Kind, endpoint, r.End-r.Start, r.Sent-r.Start, slow, r.Code, r.Text)
		}
	}
}

// calmCalls is the number of consecutive successful calls after which a channel counts as calm.
const calmCalls = 30

func (c *channelState) hosts(published content) content { return c.visible(published) }

// mustSucceedAfter returns the time after which calls of a channel must succeed. ok is false if a
// current fault may make calls fail until it ends.
func (j *judge) mustSucceedAfter(c *channelState, at time.Duration) (since time.Duration, ok bool) {
	since = j.changedAt
	hosts := j.hostsUpToHealthy(c)
	bound := time.Duration(len(hosts)-1)*j.failover + refusedLimit
	refused, failing := true, false // refused: all hosts refused connections, so the channel waits for no timer
	for _, h := range hosts.allHosts() {
		for _, t := range j.periodsAt(h, 0, at) {
			if t.to >= at-bound-detectionLimit {
				refused, failing = refused && t.kind.refusesConns, failing || t.kind.failsCalls
			}
			if t.to < at {
				since = max(since, t.to)
				continue
			}
			since = max(since, t.from)
			if t.kind.failsCalls && !c.recommended || h == j.healthyHost {
				return 0, false
			}
		}
	}
	switch {
	case refused:
		bound = refusedLimit
	case failing && c.recommended:
		bound += detectionLimit
	}
	return since + bound, true
}

// hostsUpToHealthy returns the hosts of a channel, from the first priority to that of the healthy
// host. In each priority except the last, the channel waits for at most one timer.
func (j *judge) hostsUpToHealthy(c *channelState) content {
	hosts := c.hosts(j.published)
	return hosts[:1+slices.IndexFunc(hosts, func(priority []string) bool { return slices.Contains(priority, j.healthyHost) })]
}

// refusedLimit is the maximum time until a channel leaves endpoints that refuse connections. For
// other faults, it is added to the timers.
const refusedLimit = 4 * time.Second

// detectionLimit is the maximum time until keepalive or outlier detection notices a fault.
const detectionLimit = 15*time.Second + 5*time.Second

func (j *judge) checkUnsent(c *channelState, r record) {
	j.checkWait(c, r, r.End-r.Start)
	slow := busyFactor * j.delay(r.Start-20*time.Second, r.End)
	if since, ok := j.mustSucceedAfter(c, r.End); ok && r.Start > since+slow {
		j.log.ruleBroken(ruleWait, "%s: a call (%s) was never sent although %s works and the timers have run: %s: %s", c.name, r.Kind, j.healthyHost, r.Code, r.Text)
	}
}

// checkWait checks how long a wait-for-ready call has waited. It does not check the call if a
// backend kept connections but failed calls, because each attempt may then have waited.
func (j *judge) checkWait(c *channelState, r record, waited time.Duration) {
	hosts := j.hostsUpToHealthy(c)
	limit := time.Duration(len(hosts)-1)*j.failover + refusedLimit
	for _, h := range hosts.allHosts() {
		for _, t := range j.periodsAt(h, r.Start-detectionLimit, r.End) {
			if t.kind.failsCalls || h == j.healthyHost {
				return
			}
		}
	}
	if r.Kind == waitForReadyCall && waited > limit+busyFactor*j.delay(r.Start-20*time.Second, r.End) {
		j.log.ruleBroken(ruleWait, "%s: a call waited %v although %s worked all the time, want at most %v: %s: %s", c.name, waited, j.healthyHost, limit, r.Code, r.Text)
	}
}

func (j *judge) checkPriority(c *channelState, r record) {
	endpoint, published := withoutPort(r.To), c.hosts(j.published)
	for i, hosts := range published {
		if slices.Contains(hosts, endpoint) {
			return
		}
		since := j.changedAt
		total := time.Duration(0) // total duration of all faults, which bounds the backoff
		for _, h := range hosts {
			for _, t := range j.periodsAt(h, 0, r.Sent) {
				since = max(since, t.to)
				total += min(t.to, r.Sent) - t.from
			}
		}
		if since == forever {
			continue
		}
		bound := j.returnTime(c, total) + busyFactor*j.delay(since, r.Sent)
		if r.Sent > since+bound {
			j.log.ruleBroken(rulePriority, "%s: a call went to %s although all of priority %d has worked for %v, want at most %v", c.name, endpoint, i, r.Sent-since, bound)
			return
		}
	}
}

// returnTime returns the maximum time until calls return to a priority after faults with the given
// total duration.
func (j *judge) returnTime(c *channelState, total time.Duration) time.Duration {
	bound := 40*time.Second + min(2*total, 144*time.Second) // a connection attempt, a DNS lookup, and the backoff, which grows by 1.6 with a jitter of 0.2
	if c.recommended {
		bound = 40*time.Second + 12*time.Second + time.Minute + shareLimit + ejectionLimit
	}
	return bound + j.failover
}

const ejectionLimit = 90 * time.Second

// shareLimit is how long the share of a priority grows, after the first probe, for a slow client.
const shareLimit = 150 * time.Second

func (j *judge) totals() (calls, failed, judged int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.channels {
		calls += c.calls
		failed += c.failed
	}
	return calls, failed, j.judged
}
