package pickfirst_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	scenario "github.com/understudy-lb/understudy/internal/testing/pickfirstscenario"
	"github.com/understudy-lb/understudy/internal/xnet"
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
	core  core.Core
	names []string
	made  map[string]bool
	now   time.Duration
	timer time.Duration
	log   []string
	rests map[string]time.Duration

	closed bool
}

func newTarget() *target { return &target{made: map[string]bool{}, rests: map[string]time.Duration{}} }

func (t *target) Update(names []string, health bool) {
	if t.closed {
		return
	}
	names = once(names)
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
	t.act(actions)
}

func once(names []string) (list []string) {
	for _, n := range names {
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

func (t *target) shutdown(name string) {
	delete(t.made, name)
	delete(t.rests, name)
	t.log = append(t.log, "shutdown "+name)
}

func (t *target) act(actions []core.Action) {
	for _, a := range actions {
		name := ""
		if a.Index < len(t.names) {
			name = t.names[a.Index]
		}
		switch a.Kind {
		case core.Connect:
			t.noTimer()
			t.made[name] = true
			t.log = append(t.log, "connect "+name)
		case core.Shutdown:
			t.shutdown(name)
		case core.Renew:
			t.log = append(t.log, "renew "+name)
		case core.StartTimer:
			t.noTimer()
			if len(t.names) == 1 {
				t.log = append(t.log, "a needless timer for a single address")
			}
			t.timer = t.now + core.AttemptDelay
		case core.StopTimer:
			t.timer = 0
		case core.WatchHealth:
			t.log = append(t.log, "watch "+name)
		case core.Backoff:
			t.rests[name] = t.now + xnet.Backoff(a.Count, 0.5)
		case core.Resolve:
			t.log = append(t.log, "resolve")
		case core.Publish:
			if a.State != core.Connecting {
				t.noTimer()
			}
			t.log = append(t.log, "publish "+published(a, name))
		}
	}
}

func (t *target) noTimer() {
	if t.timer != 0 {
		t.log = append(t.log, "the timer of an earlier attempt is still running")
	}
}

func published(a core.Action, name string) string {
	switch a.State {
	case core.Ready:
		return "READY " + name
	case core.TransientFailure:
		return fmt.Sprintf("TRANSIENT_FAILURE: %v", a.Err)
	}
	return a.State.String()
}

func (t *target) ResolverError(err error) {
	t.act(t.core.Fail(fmt.Errorf("name resolver error: %v", err)))
}

func (t *target) ExitIdle() {
	if !t.closed {
		t.act(t.core.ExitIdle())
	}
}

func (t *target) ResetBackoff() {
	if !t.closed {
		t.act(t.core.ResetBackoff())
	}
}

func (t *target) Report(name string, s core.State, err error) {
	if t.made[name] {
		t.act(t.core.Report(t.now, slices.Index(t.names, name), s, err))
	}
}

func (t *target) Health(name string, s core.State, err error) {
	if t.made[name] {
		t.act(t.core.Health(slices.Index(t.names, name), s, err))
	}
}

func (t *target) Advance(d time.Duration) {
	for end := t.now + d; ; {
		next, rested := t.timer, ""
		for _, name := range slices.Sorted(maps.Keys(t.rests)) {
			if at := t.rests[name]; next == 0 || at < next {
				next, rested = at, name
			}
		}
		if next == 0 || next > end {
			t.now = end
			return
		}
		t.now = next
		if rested == "" {
			t.timer = 0
			t.act(t.core.TimerFired())
			continue
		}
		delete(t.rests, rested)
		t.Report(rested, core.Idle, nil)
	}
}

func (t *target) Close() {
	for _, name := range t.names {
		if t.made[name] {
			t.shutdown(name)
		}
	}
	t.timer, t.closed = 0, true
}

func (t *target) Take() []string {
	log := t.log
	t.log = nil
	return log
}
