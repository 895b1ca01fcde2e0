package demo

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const measureWindow = 2 * time.Second

const settleLimit = 12 * time.Second

// recoveryLimit limits the time until a priority that has recovered gets all calls again. Its
// endpoints are ejected for up to 40 s, and its share grows for 20 s. The rest is a margin for a busy
// machine.
const recoveryLimit = 40*time.Second + 20*time.Second + 15*time.Second

// reactionTime is the maximum time until a change affects calls. An edit of the file takes effect
// within a second.
const reactionTime = time.Second

const tolerance = 0.02

type phase struct {
	name string
	// act changes the cluster. failed is the time of the last failure that act has caused, or zero.
	act func(*cluster) (failed time.Time, err error)
	// settle waits until the calls show the effect of act. n is the number of calls that ended
	// before act.
	settle func(ctx context.Context, c *cluster, t *traffic, n int) error
	// failsOver means that calls move to another priority. The time until its first answer is
	// measured.
	failsOver bool
	maxFailed float64
}

var phases = []phase{
	{name: "steady", act: changeNothing, settle: awaitAllAnswers},
	{name: "endpoint-killed", act: killOne, settle: awaitReaction},
	{name: "priority-lost", act: killPriority0, settle: awaitAllAnswers, failsOver: true},
	{name: "priority-restored", act: restoreAll, settle: awaitNoOtherAnswers},
	{name: "weights-changed", act: changeWeights, settle: awaitReaction},
	// Single calls go to priority 0 here, to find out whether it has recovered.
	{name: "errors", act: breakPriority0, settle: awaitAllAnswers, failsOver: true, maxFailed: 0.02},
	{name: "errors-over", act: endErrors, settle: awaitNoOtherAnswers},
}

func changeNothing(*cluster) (time.Time, error) { return time.Time{}, nil }

func killOne(c *cluster) (time.Time, error) {
	killed := time.Now()
	c.slots[0].kill()
	return killed, nil
}

func killPriority0(c *cluster) (time.Time, error) {
	var killed time.Time
	for _, s := range c.slots {
		if s.priority == 0 && s.isRunning() {
			killed = time.Now()
			s.kill()
		}
	}
	return killed, nil
}

func breakPriority0(c *cluster) (time.Time, error) {
	for _, s := range c.slots {
		if s.priority != 0 {
			continue
		}
		if err := s.setMode(failing); err != nil {
			return time.Time{}, err
		}
	}
	return time.Now(), nil
}

func endErrors(c *cluster) (time.Time, error) {
	for _, s := range c.slots {
		if err := s.setMode(serving); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, nil
}

func restoreAll(c *cluster) (time.Time, error) {
	for _, s := range c.slots {
		if err := s.start(); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, nil
}

func changeWeights(c *cluster) (time.Time, error) {
	for i, weight := range []uint32{1, 4, 1, 1, 1} {
		c.slots[i].weight = weight
	}
	for _, s := range c.slots {
		if s.locality == "us-east/b" {
			s.localityWeight = 2
		}
	}
	return time.Time{}, c.write()
}

// awaitAllAnswers waits until all backends that should get calls have answered. It ignores the
// first n calls.
func awaitAllAnswers(ctx context.Context, c *cluster, t *traffic, n int) error {
	want := c.expectedAddresses()
	ctx, cancel := context.WithTimeoutCause(ctx, settleLimit,
		fmt.Errorf("not all of %v answered within %v", want, settleLimit))
	defer cancel()
	return t.awaitAddresses(ctx, n, want)
}

// awaitNoOtherAnswers waits until the backends that should get calls, and no others, have answered
// many calls in a row. Before that, the share of a priority that has recovered grows.
func awaitNoOtherAnswers(ctx context.Context, c *cluster, t *traffic, n int) error {
	const streak = 1000
	want := c.expectedAddresses()
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryLimit,
		fmt.Errorf("not all calls were answered by %v within %v", want, recoveryLimit))
	defer cancel()
	return t.awaitStreak(ctx, n, want, streak)
}

func awaitReaction(ctx context.Context, _ *cluster, _ *traffic, _ int) error {
	return wait(ctx, reactionTime)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func (p phase) run(ctx context.Context, c *cluster, t *traffic) (PhaseResult, error) {
	first := t.count()
	failed, err := p.act(c)
	if err != nil {
		return PhaseResult{}, err
	}
	settleErr := p.settle(ctx, c, t, first)
	if ctx.Err() != nil {
		return PhaseResult{}, context.Cause(ctx)
	}
	counted := t.count()
	if err := wait(ctx, measureWindow); err != nil {
		return PhaseResult{}, err
	}
	calls, _ := t.callsAfter(first)
	result := p.evaluate(c, calls, calls[counted-first:])
	if p.failsOver {
		result.recordFailover(c, calls, failed, p.maxFailed == 0)
	}
	if settleErr != nil {
		result.problem("%v", settleErr)
	}
	return result, nil
}

// evaluate compares the counted calls with the expected shares. all holds all calls of the phase.
func (p phase) evaluate(c *cluster, all, counted []call) PhaseResult {
	r := PhaseResult{Name: p.name, Calls: len(all), Priority: -1}
	for _, call := range all {
		if call.err != nil {
			r.Failed++
			r.lastError = call.err
		}
	}
	answers := map[string]int{}
	answered := 0
	var lastErr error
	for _, call := range counted {
		if call.err == nil {
			answers[call.address]++
			answered++
		} else {
			lastErr = call.err
		}
	}
	if failed := len(counted) - answered; float64(failed) > p.maxFailed*float64(len(counted)) {
		r.problem("%d of %d calls failed after the phase had settled: %v", failed, len(counted), lastErr)
	}
	if p.maxFailed == 0 && 1000*r.Failed > len(all) {
		r.problem("%d of %d calls failed, although each is retried: %v", r.Failed, len(all), r.lastError)
	}
	for i, expected := range c.expectedShares() {
		s := c.slots[i]
		e := EndpointResult{Address: s.address, Locality: s.locality, Priority: s.priority, Expected: expected}
		if answered > 0 {
			e.Measured = float64(answers[s.address]) / float64(answered)
		}
		if e.Measured > 0 && (r.Priority < 0 || s.priority < r.Priority) {
			r.Priority = s.priority
		}
		if diff := e.Measured - e.Expected; diff > tolerance || diff < -tolerance {
			r.problem("%s got %.1f %% of the calls, expected %.1f %%", e.Address, 100*e.Measured, 100*e.Expected)
		}
		r.Endpoints = append(r.Endpoints, e)
	}
	if want := c.activePriority(); r.Priority != want {
		r.problem("priority %d is in use, expected %d", r.Priority, want)
	}
	return r
}

// recordFailover records the time from the failure to the first answer of the next priority. If
// strict is set, a failure of a call that began after this answer is a problem.
func (r *PhaseResult) recordFailover(c *cluster, calls []call, failed time.Time, strict bool) {
	inUse := c.activePriority()
	first := slices.IndexFunc(calls, func(call call) bool {
		return call.err == nil && call.end.After(failed) && c.priorityOf(call.address) == inUse
	})
	if first < 0 {
		r.problem("no answer from priority %d", inUse)
		return
	}
	ms := float64(calls[first].end.Sub(failed).Microseconds()) / 1000
	r.FailoverMS = &ms
	for _, call := range calls[first:] {
		if strict && call.err != nil && call.begin.After(calls[first].end) {
			r.problem("a call that began after the first answer from priority %d failed: %v", inUse, call.err)
			return
		}
	}
}

func (c *cluster) priorityOf(address string) int {
	for _, s := range c.slots {
		if s.address == address {
			return s.priority
		}
	}
	return -1
}
