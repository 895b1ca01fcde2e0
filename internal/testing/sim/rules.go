package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The rules as the log describes them.
const (
	ruleWait     = "a call that waits is answered while an endpoint can be reached"
	ruleRemoved  = "no call goes to an endpoint a second after it was removed"
	rulePriority = "the right priority is in use once its timers have run"
	ruleFailover = "each counted failover is a real one"
	ruleShares   = "shares match the weights within one percentage point in quiet periods"
	ruleContent  = "the channel has its source's content"
	ruleAgain    = "the channel does not keep receiving identical updates"
	ruleServer   = "the second management server is not used once the first serves again"
	ruleStandby  = "standbys are connected in quiet periods"
	ruleNames    = "log lines and errors are true"
	ruleAnswers  = "if any priority answers, the one in use answers"
	ruleCore     = "if one endpoint works permanently, calls succeed once the timers have run"
	ruleOrder    = "a lower priority gets calls only if no higher one is READY and works"
	ruleShed     = "a call is refused only if no priority is READY and works"
	ruleLoad     = "above its capacity, a channel answers most of the calls that it can answer"
	ruleRetries  = "above its capacity, a channel makes few more attempts than calls"
	ruleCalm     = "calls do not leave the first priority while nothing is wrong"
	ruleRecovery = "after trouble, a channel is back to normal soon"
	ruleEnd      = "a closed channel leaves nothing behind"
)

func (w *World) sentTo(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.conditions[address]; c != nil {
		c.inFlight++
	}
	if w.judge != nil {
		w.judge.sent(address)
	}
	w.checkOrder(address)
	if removedAt, ok := w.removedAt[address]; ok && time.Since(removedAt) > time.Second {
		w.Log.Break(ruleRemoved, "a call went to %s, which was removed from the channel %v ago", address, time.Since(removedAt))
	}
}

func (w *World) call(waitForReady bool) {
	w.mu.Lock()
	deadline, cc := w.settleTime(), w.cc
	shortDeadline := w.settings.detects && waitForReady && w.calls.Made%2 == 0
	if shortDeadline {
		deadline = w.settings.shortDeadline
	}
	if w.checking || cc == nil {
		w.mu.Unlock()
		return // a check is making its own calls, or the channel is being replaced
	}
	w.calls.Made++
	w.mu.Unlock()
	c := &call{start: time.Now()}
	_, err := c.invoke(cc, deadline, waitForReady)
	address, sentAt := c.lastAttempt()
	w.mu.Lock()
	closed := cc != w.cc
	switch {
	case err == nil:
		w.calls.Answered++
	case address != "":
		w.calls.Failed++
	default:
		w.calls.Waited++
	}
	w.mu.Unlock()
	switch {
	case err != nil && address != "":
		w.Log.Repeat(fmt.Sprintf("call sent to %s: %v", address, err), "the first sent %v ago", time.Since(sentAt))
	case time.Since(c.start) > 2*time.Second:
		w.Log.Repeat(fmt.Sprintf("slow call, sent to %q: %v", address, err), "the first made %v ago", time.Since(c.start))
	}
	if isShed(err) {
		w.mu.Lock()
		w.checkShed()
		w.mu.Unlock()
		return
	}
	if err == nil || address != "" || closed {
		return
	}
	switch {
	case shortDeadline:
	case waitForReady:
		w.checkWait(c, deadline, err)
	default:
		w.checkError(c, err)
	}
}

func (w *World) checkWait(c *call, deadline time.Duration, err error) {
	if status.Code(err) != codes.DeadlineExceeded {
		w.Log.Break(ruleWait, "a queued call ended before its deadline: %v", err)
		return
	}
	w.mu.Lock()
	reachable := w.reachableSince(c.start)
	w.mu.Unlock()
	if reachable != "" {
		w.Log.Break(ruleWait, "a call waited %v although %s was reachable all the time", deadline, reachable)
	}
}

func (w *World) checkError(c *call, err error) {
	text := status.Convert(err).Message()
	if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
		w.Log.Break(ruleNames, "a call fails with %v, want UNAVAILABLE: %s", code, text)
	}
	if strings.Contains(text, "\n") {
		w.Log.Break(ruleNames, "an error has several lines: %q", text)
	}
	w.Log.Repeat(fmt.Sprintf("call fails: %v", err), "the first made %v ago", time.Since(c.start))
	if problem := w.checkErrorText(text); problem != "" {
		w.Log.Break(ruleNames, "a call fails with %q: %s", text, problem)
	}
}

// reachableSince returns "" if there's none.
func (w *World) reachableSince(t time.Time) string {
	if w.updatedAt.After(t) {
		return ""
	}
	for _, tier := range w.knownTruth {
		for _, address := range tier.Serving() {
			if c := w.conditions[address]; c.reachable() && !c.changedAt.After(t) && !w.mayRefuseCalls(address) {
				return address
			}
		}
	}
	return ""
}

// mayRefuseCalls is true if an endpoint may get no calls even though it's the only one that can be
// reached. That's because without overflow, an ejection lasts until its time is over (gRFC A50).
// The caller holds the lock.
func (w *World) mayRefuseCalls(address string) bool {
	c := w.conditions[address]
	return !w.settings.overflow && c.wasEjected && c.mayBeEjected()
}

func (w *World) allMayRefuseCalls(addresses []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !slices.ContainsFunc(addresses, func(address string) bool { return w.reachable(address) && !w.mayRefuseCalls(address) })
}

func (w *World) setChecking(checking bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checking = checking
}

// checkQuiet returns false if the channel got an update during the check, which can take long if an
// endpoint is slow.
func (w *World) checkQuiet() (undisturbed bool) {
	q := w.newExpectation()
	if len(q.priorities) == 0 {
		return !w.disturbed(q)
	}
	w.setChecking(true)
	defer w.setChecking(false)
	counts, ok := w.sample(q)
	if !ok {
		return !w.disturbed(q)
	}
	w.checkStandbys(q)
	w.checkShares(q, counts)
	return !w.disturbed(q)
}

// sample returns false if a call went to a wrong endpoint, or if the channel got an update in the
// meantime.
func (w *World) sample(q expectation) (map[string]int, bool) {
	counts := make(map[string]int)
	for range q.calls {
		c := &call{start: time.Now()}
		_, err := c.invoke(w.cc, 5*time.Second, true)
		to, _ := c.lastAttempt()
		if w.disturbed(q) {
			return nil, false
		}
		if isShed(err) { // a priority that's slow or hangs is full
			w.mu.Lock()
			defer w.mu.Unlock()
			w.checkShed()
			return nil, false
		}
		if to == "" && w.allMayRefuseCalls(q.endpoints) {
			return nil, false
		}
		if to == "" {
			w.Log.Break(rulePriority, "in a quiet period a call was never sent, want one of p%d: %v", q.priorities, err)
			return nil, false
		}
		counts[to]++
		if !slices.Contains(q.endpoints, to) {
			w.Log.Break(rulePriority, "in a quiet period a call went to %s, want one of p%d: %s", to, q.priorities, strings.Join(q.endpoints, ", "))
			return nil, false
		}
	}
	return counts, true
}

type expectation struct {
	priorities []int
	endpoints  []string
	shares     []share // nil if we can't be sure of the shares
	calls      int
	updatedAt  time.Time
}

// newExpectation also records the priority in use, so that we know which later changes may cause a
// failover.
func (w *World) newExpectation() expectation {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkConnections()
	q := expectation{priorities: w.correctPriorities(w.knownTruth), calls: 400, updatedAt: w.updatedAt}
	w.priorityInUse, w.vitalAddresses = -1, nil
	for _, i := range q.priorities {
		q.endpoints = append(q.endpoints, w.knownTruth[i].Serving()...)
	}
	if len(q.priorities) == 0 {
		return q
	}
	w.calls.Checks++
	if slices.ContainsFunc(q.endpoints, func(address string) bool { return w.conditions[address].hang }) {
		q.calls = 10 // each of these calls takes until its deadline
	}
	certain := q.certain(w)
	if certain && q.calls > 100 {
		q.shares = w.settings.shares(w.knownTruth[q.priorities[0]], w.reachable)
	}
	if certain {
		w.priorityInUse, w.vitalAddresses = q.priorities[0], w.knownTruth[:q.priorities[0]+1].serving()
	}
	return q
}

// certain must be called with the lock held.
func (q expectation) certain(w *World) bool {
	uncertain := func(address string) bool { return w.reachable(address) && !w.certainlyUsable(address) }
	return len(q.priorities) == 1 && !slices.ContainsFunc(q.endpoints, uncertain)
}

func (w *World) disturbed(q expectation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.updatedAt != q.updatedAt
}

// checkConnections must be called with the lock held.
func (w *World) checkConnections() {
	for _, address := range w.addresses {
		// A hanging call keeps the connection to a removed endpoint open until its deadline.
		if c := w.conditions[address]; c.hang || time.Since(c.changedAt) < 2*(w.settleTime()+w.maxRestTime()) {
			continue
		}
		times := 0
		for _, tier := range w.knownTruth {
			for _, a := range tier.Serving() {
				if a == address {
					times++
				}
			}
		}
		if open := w.network.OpenTo(address); open > times && w.knownTruth != nil {
			w.Log.Break(ruleEnd, "%d connections to %s, which occurs %d times in the update", open, address, times)
		}
	}
}
