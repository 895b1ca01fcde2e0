package pickfirst_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	scenario "github.com/understudy-lb/understudy/internal/testing/pickfirstscenario"
)

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %d scenario files, want at least 6; error: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			scenario.Run(t, file, func() scenario.Target { return newTarget() })
		})
	}
}

type target struct {
	core        core.Core
	names       []string
	subchannels map[string]bool
	now         time.Duration
	timer       time.Duration
	lines       []string
	backoffEnds map[string]time.Duration
	ready       string                 // the address that READY was last published for
	counted     map[string]*connection // the connections whose calls are counted
	calls       map[string]*connection // the counted calls in flight
	lost        []*connection          // the lost connections that have counted calls in flight

	closed bool
}

// connection counts calls like the shell.
type connection struct {
	address  string
	inFlight int
	answered bool
}

func newTarget() *target {
	return &target{subchannels: map[string]bool{}, backoffEnds: map[string]time.Duration{},
		counted: map[string]*connection{}, calls: map[string]*connection{}}
}

func (t *target) Update(names []string, health bool) {
	if t.closed {
		return
	}
	names = unique(names)
	from := make([]int, len(names))
	for i, n := range names {
		from[i] = slices.Index(t.names, n)
	}
	t.core.SetHealth(health)
	dropped, actions := t.core.Update(from)
	for _, i := range dropped {
		t.shutdown(t.names[i])
	}
	t.names = names
	t.execute(actions)
}

func unique(names []string) (list []string) {
	for _, n := range names {
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

func (t *target) shutdown(name string) {
	delete(t.subchannels, name)
	delete(t.backoffEnds, name)
	t.forgetCalls(name)
	t.lines = append(t.lines, "shutdown "+name)
}

func (t *target) forgetCalls(name string) {
	isOf := func(c *connection) bool { return c.address == name }
	delete(t.counted, name)
	maps.DeleteFunc(t.calls, func(_ string, c *connection) bool { return isOf(c) })
	t.lost = slices.DeleteFunc(t.lost, isOf)
}

func (t *target) execute(actions []core.Action) {
	defer t.callsEnded()
	for _, a := range actions {
		name := ""
		if a.Index < len(t.names) {
			name = t.names[a.Index]
		}
		switch a.Kind {
		case core.Connect:
			t.checkNoTimer()
			t.subchannels[name] = true
			t.lines = append(t.lines, "connect "+name)
		case core.Shutdown:
			t.shutdown(name)
		case core.Renew:
			t.forgetCalls(name)
			t.lines = append(t.lines, "renew "+name)
		case core.StartTimer:
			t.checkNoTimer()
			if len(t.names) == 1 {
				t.lines = append(t.lines, "a needless timer for a single address")
			}
			t.timer = t.now + core.AttemptDelay
		case core.StopTimer:
			t.timer = 0
		case core.WatchHealth:
			t.lines = append(t.lines, "watch "+name)
		case core.Backoff:
			t.backoffEnds[name] = t.now + xnet.Backoff(a.Count, 0.5)
		case core.AwaitCalls:
			if t.counted[name] == nil {
				t.counted[name] = &connection{address: name}
			}
			t.lost, t.counted[name] = append(t.lost, t.counted[name]), nil
		case core.Resolve:
			t.lines = append(t.lines, "resolve")
		case core.Publish:
			if a.State != core.Connecting {
				t.checkNoTimer()
			}
			t.lines = append(t.lines, "publish "+describePublish(a, name))
			t.published(a, name)
		}
	}
	for i, name := range t.names {
		if t.core.InUse(i) != (name == t.ready) {
			t.lines = append(t.lines, name+" is in use, but not published, or the reverse")
		}
	}
}

func (t *target) published(a core.Action, name string) {
	t.ready = ""
	if a.State != core.Ready {
		return
	}
	t.ready = name
	if !a.Counted {
		delete(t.counted, name)
	} else if t.counted[name] == nil {
		t.counted[name] = &connection{address: name}
	}
}

// callsEnded reports the end of the last call on each lost connection.
func (t *target) callsEnded() {
	for i, c := range t.lost {
		if c.inFlight == 0 {
			t.lost = slices.Delete(t.lost, i, i+1)
			t.execute(t.core.CallsEnded(slices.Index(t.names, c.address), c.answered))
			return
		}
	}
}

func (t *target) Call(name string) {
	line := "sent to " + t.ready
	if t.ready == "" {
		line = "not sent"
	} else if c := t.counted[t.ready]; c != nil {
		c.inFlight++
		t.calls[name] = c
		line += ", and counted"
	}
	t.lines = append(t.lines, line)
}

func (t *target) EndCall(name string, answered bool) {
	c := t.calls[name]
	if c == nil {
		return
	}
	delete(t.calls, name)
	c.inFlight--
	if answered && !c.answered {
		c.answered = true
		if t.counted[c.address] == c {
			t.execute(t.core.Answered(slices.Index(t.names, c.address)))
		}
	}
	t.callsEnded()
}

func (t *target) checkNoTimer() {
	if t.timer != 0 {
		t.lines = append(t.lines, "the timer of an earlier attempt is still running")
	}
}

func describePublish(a core.Action, name string) string {
	switch a.State {
	case core.Ready:
		return "READY " + name
	case core.TransientFailure:
		return fmt.Sprintf("TRANSIENT_FAILURE: %v", a.Err)
	}
	return a.State.String()
}

func (t *target) ResolverError(err error) {
	t.execute(t.core.Fail(fmt.Errorf("name resolver error: %v", err)))
}

func (t *target) ExitIdle() {
	if !t.closed {
		t.execute(t.core.ExitIdle())
	}
}

func (t *target) ResetBackoff() {
	if !t.closed {
		t.execute(t.core.ResetBackoff(t.now, 0))
	}
}

func (t *target) Report(name string, s core.State, err error) {
	if t.subchannels[name] {
		t.execute(t.core.Report(t.now, slices.Index(t.names, name), s, err))
		if s != core.Ready {
			delete(t.counted, name)
		}
	}
}

func (t *target) Health(name string, s core.State, err error) {
	if t.subchannels[name] {
		t.execute(t.core.Health(slices.Index(t.names, name), s, err))
	}
}

func (t *target) Advance(d time.Duration) {
	for end := t.now + d; ; {
		next, backoffEnded := t.timer, ""
		for _, name := range slices.Sorted(maps.Keys(t.backoffEnds)) {
			if backoffEnd := t.backoffEnds[name]; next == 0 || backoffEnd < next {
				next, backoffEnded = backoffEnd, name
			}
		}
		if next == 0 || next > end {
			t.now = end
			return
		}
		t.now = next
		if backoffEnded == "" {
			t.timer = 0
			t.execute(t.core.TimerFired())
			continue
		}
		delete(t.backoffEnds, backoffEnded)
		t.Report(backoffEnded, core.Idle, nil)
	}
}

func (t *target) Close() {
	for _, name := range t.names {
		if t.subchannels[name] {
			t.shutdown(name)
		}
	}
	t.timer, t.closed = 0, true
}

func (t *target) Take() []string {
	lines := t.lines
	t.lines = nil
	return lines
}
