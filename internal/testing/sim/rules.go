package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The rules, as they are named in logs.
const (
	ruleWait     = "a call that waits is answered while an endpoint can be reached"
	ruleRemoved  = "no call goes to an endpoint a second after it was removed"
	rulePriority = "the right priority is in use once its timers have run"
	ruleFailover = "no failover is counted that was none"
	ruleShares   = "shares are within a point of the weights in quiet times"
	ruleTold     = "the channel knows what its source says"
	ruleNames    = "what is logged, and what errors say, has happened"
	ruleEnd      = "nothing is left when the channel is closed"
)

// sentTo is told of each attempt that is sent.
func (w *World) sentTo(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.gone[address]; ok && time.Since(at) > time.Second {
		w.Log.Break(ruleRemoved, "a call went to %s, which the channel was told to leave %v ago", address, time.Since(at))
	}
}

// call makes one call and holds it against the rules.
func (w *World) call(wait bool) {
	w.mu.Lock()
	deadline := w.settleTime()
	cc := w.cc
	if w.checking || cc == nil {
		w.mu.Unlock()
		return // calls of others would spoil the shares; or there is no channel at this moment
	}
	w.calls.Made++
	w.mu.Unlock()
	c := &call{start: time.Now()}
	_, err := c.make(cc, deadline, wait)
	to, at := c.sent()
	w.mu.Lock()
	closed := cc != w.cc
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
	if wait {
		w.checkWait(c, deadline, err)
	} else {
		w.checkError(c, err)
	}
}

// checkWait is about a call that waited for ready and was never sent.
func (w *World) checkWait(c *call, deadline time.Duration, err error) {
	if status.Code(err) != codes.DeadlineExceeded {
		w.Log.Break(ruleWait, "a queued call ended before its deadline: %v", err)
		return
	}
	w.mu.Lock()
	good := w.reachableSince(c.start)
	w.mu.Unlock()
	if good != "" {
		w.Log.Break(ruleWait, "a call waited %v in vain, though %s could be reached all the time", deadline, good)
	}
}

// checkError is about a call that did not wait, and was never sent.
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

// reachableSince returns an endpoint that the channel has known and could have
// reached since the given time, "" if there is none.
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

// checkQuiet holds a world that has settled against the rules: the right priority has
// all the calls, by weight.
func (w *World) checkQuiet() {
	w.mu.Lock()
	known, inUse := w.known, w.inUse(w.known)
	w.checkConnections()
	w.lowest, w.vital = inUse, w.known[:inUse+1].serving()
	if inUse < 0 {
		w.mu.Unlock()
		return
	}
	w.calls.Checks++
	tier := known[inUse]
	shares := tier.Shares(func(address string) bool { return w.conditions[address].connects() })
	calls := 400
	for address := range shares {
		if w.conditions[address].hang {
			calls = 10 // each takes its whole time
		}
	}
	w.mu.Unlock()

	w.setChecking(true)
	defer w.setChecking(false)
	counts := make(map[string]int)
	for range calls {
		c := &call{start: time.Now()}
		_, err := c.make(w.cc, 5*time.Second, true)
		to, _ := c.sent()
		if to == "" {
			w.Log.Break(rulePriority, "in quiet times a call waited for p%d in vain: %v", inUse, err)
			return
		}
		counts[to]++
		if !slices.Contains(tier.Serving(), to) {
			w.Log.Break(rulePriority, "in quiet times a call went to %s, want p%d, which is %s", to, inUse, strings.Join(tier.Serving(), ", "))
			return
		}
	}
	for address, share := range shares {
		if got := float64(counts[address]) / float64(calls); calls > 100 && math.Abs(got-share) > 0.01 {
			w.Log.Break(ruleShares, "%s of p%d got %.1f %% of the calls, want %.1f %%", address, inUse, 100*got, 100*share)
		}
	}
}

// checkConnections looks for connections that are too many. The lock is held.
func (w *World) checkConnections() {
	for _, address := range w.addresses {
		// A call that hangs keeps the connection of an endpoint that was removed until its
		// deadline.
		if c := w.conditions[address]; c.hang || time.Since(c.since) < 2*w.settleTime() {
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
			w.Log.Break(ruleEnd, "%d connections to %s, which the channel knows %d times", open, address, times)
		}
	}
}
