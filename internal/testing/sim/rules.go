package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The names of the rules in logs.
const (
	ruleWait     = "a call that waits is answered while an endpoint can be reached"
	ruleRemoved  = "no call goes to an endpoint a second after it was removed"
	rulePriority = "the right priority is in use once its timers have run"
	ruleFailover = "each counted failover is a real one"
	ruleShares   = "shares match the weights within one percentage point in quiet periods"
	ruleEjected  = "outlier detection ejects endpoints whose calls fail"
	ruleContent  = "the channel has its source's content"
	ruleAgain    = "the channel does not keep receiving identical updates"
	ruleServer   = "the second management server is not used once the first serves again"
	ruleStandby  = "standbys are connected in quiet periods"
	ruleGrowth   = "the share of a recovered endpoint grows over slowStart"
	ruleNames    = "log lines and errors are true"
	ruleAnswers  = "if any priority answers, the one in use answers"
	ruleFro      = "calls do not keep moving between priorities without an event"
	ruleCore     = "if one endpoint works permanently, calls succeed once the timers have run"
	ruleEnd      = "a closed channel leaves nothing behind"
)

func (w *World) sentTo(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.conditions[address]; c != nil {
		c.underWay++
	}
	if w.judge != nil {
		w.judge.sent(address)
	}
	if at, ok := w.gone[address]; ok && time.Since(at) > time.Second {
		w.Log.Break(ruleRemoved, "a call went to %s, which was removed from the channel %v ago", address, time.Since(at))
	}
}

func (w *World) call(wait bool) {
	w.mu.Lock()
	deadline, cc := w.settleTime(), w.cc
	short := w.detects() && wait && w.calls.Made%2 == 0
	if short {
		deadline = w.settings.hang
	}
	if w.checking || cc == nil {
		w.mu.Unlock()
		return // checks count their own calls, or the channel is being replaced
	}
	w.calls.Made++
	w.mu.Unlock()
	c := &call{start: time.Now()}
	_, err := c.make(cc, deadline, wait)
	to, at := c.sent()
	w.mu.Lock()
	closed := cc != w.cc
	if short && to != "" && status.Code(err) == codes.DeadlineExceeded {
		w.mark(markShort)
	}
	switch {
	case err == nil:
		w.calls.Answered++
	case to != "":
		w.calls.Failed++
	default:
		w.calls.Waited++
	}
	w.mu.Unlock()
	switch {
	case err != nil && to != "":
		w.Log.Repeat(fmt.Sprintf("call sent to %s: %v", to, err), "the first sent %v ago", time.Since(at))
	case time.Since(c.start) > 2*time.Second:
		w.Log.Repeat(fmt.Sprintf("slow call, sent to %q: %v", to, err), "the first made %v ago", time.Since(c.start))
	}
	if err == nil || to != "" || closed {
		return
	}
	switch {
	case short:
	case wait:
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
	good := w.reachableSince(c.start)
	w.mu.Unlock()
	if good != "" {
		w.Log.Break(ruleWait, "a call waited %v although %s was reachable all the time", deadline, good)
	}
}

// checkError checks a call without wait-for-ready that was never sent.
func (w *World) checkError(c *call, err error) {
	text := status.Convert(err).Message()
	if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
		w.Log.Break(ruleNames, "a call fails with %v, want UNAVAILABLE: %s", code, text)
	}
	if strings.Contains(text, "\n") {
		w.Log.Break(ruleNames, "an error has several lines: %q", text)
	}
	w.Log.Repeat(fmt.Sprintf("call fails: %v", err), "the first made %v ago", time.Since(c.start))
	if wrong := w.blames(text); wrong != "" {
		w.Log.Break(ruleNames, "a call fails with %q: %s", text, wrong)
	}
}

// reachableSince returns an endpoint that the channel has known since the given time and could have
// reached, or "".
func (w *World) reachableSince(t time.Time) string {
	if w.knownAt.After(t) {
		return ""
	}
	for _, tier := range w.known {
		for _, address := range tier.Serving() {
			if c := w.conditions[address]; c.connects() && !c.since.After(t) {
				return address
			}
		}
	}
	return ""
}

func (w *World) setChecking(checking bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checking = checking
}

// checkQuiet checks that the right priority gets all calls, divided by weight. It returns false if
// the channel has received an update meanwhile, which may happen because calls to a slow endpoint
// take long.
func (w *World) checkQuiet() (calm bool) {
	q := w.newQuiet()
	if len(q.right) == 0 {
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
	w.checkBalance(q, counts)
	w.checkGrowth(q)
	return !w.disturbed(q)
}

// sample makes calls and counts where they went. It returns false if one went to a wrong endpoint,
// or if the channel has received an update meanwhile.
func (w *World) sample(q quiet) (map[string]int, bool) {
	counts := make(map[string]int)
	for range q.calls {
		c := &call{start: time.Now()}
		_, err := c.make(w.cc, 5*time.Second, true)
		to, _ := c.sent()
		if w.disturbed(q) {
			return nil, false
		}
		if to == "" {
			w.Log.Break(rulePriority, "in a quiet period a call was never sent, want one of p%d: %v", q.right, err)
			return nil, false
		}
		counts[to]++
		if !slices.Contains(q.endpoints, to) {
			w.Log.Break(rulePriority, "in a quiet period a call went to %s, want one of p%d: %s", to, q.right, strings.Join(q.endpoints, ", "))
			return nil, false
		}
	}
	return counts, true
}

// quiet is the expected behaviour while nothing changes.
type quiet struct {
	right     []int
	endpoints []string
	shares    []share // nil if they are not certain
	calls     int
	balanced  []map[string]float64 // all possible shares if calls are balanced between zones
	slack     float64              // the allowed deviation from balanced
	known     time.Time
}

// newQuiet returns the expected behaviour. It also records the priority in use, because later
// failovers are compared with it.
func (w *World) newQuiet() quiet {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkConnections()
	q := quiet{right: w.right(w.known), calls: 400, known: w.knownAt}
	w.lowest, w.vital = -1, nil
	for _, i := range q.right {
		q.endpoints = append(q.endpoints, w.known[i].Serving()...)
	}
	if len(q.right) == 0 {
		return q
	}
	w.calls.Checks++
	if slices.ContainsFunc(q.endpoints, func(address string) bool { return w.conditions[address].hang }) {
		q.calls = 10 // each call takes its whole timeout
	}
	sure := q.sure(w)
	if sure && q.calls > 100 {
		if tier := w.known[q.right[0]]; w.settings.near.balances(tier) {
			q.balanced, q.slack = w.settings.near.balanced(tier, w.connects), w.settings.near.slack(tier)
		} else {
			q.shares = w.settings.shares(tier, w.connects)
		}
	}
	if sure && w.settings.minReady == 0 {
		w.lowest, w.vital = q.right[0], w.known[:q.right[0]+1].serving()
	}
	return q
}

// sure reports whether it is certain which endpoints get calls. The caller holds the lock.
func (q quiet) sure(w *World) bool {
	uncertain := func(address string) bool { return w.connects(address) && !w.answers(address) }
	return len(q.right) == 1 && !slices.ContainsFunc(q.endpoints, uncertain)
}

// disturbed reports whether the channel has received an update since q was created.
func (w *World) disturbed(q quiet) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.knownAt != q.known
}

// checkConnections looks for unnecessary connections. The caller holds the lock.
func (w *World) checkConnections() {
	for _, address := range w.addresses {
		// A call that hangs keeps the connection to a removed endpoint open until its deadline.
		if c := w.conditions[address]; c.hang || time.Since(c.since) < 2*(w.settleTime()+w.rest()) {
			continue
		}
		times := 0
		for _, tier := range w.known {
			for _, a := range tier.Serving() {
				if a == address {
					times++
				}
			}
		}
		if _, open := w.network.Dials(address); open > times && w.known != nil {
			w.Log.Break(ruleEnd, "%d connections to %s, which occurs %d times in the update", open, address, times)
		}
	}
}
