package channel_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery/failover"
)

type listener struct {
	mu       sync.Mutex
	lines    []string
	start    time.Time
	calls    int
	maxCalls int
}

func (l *listener) priorityChanged(p understudy.PriorityInUse) {
	l.mu.Lock()
	l.calls++
	l.maxCalls = max(l.maxCalls, l.calls)
	l.lines = append(l.lines, fmt.Sprintf("%d %s %v since %v: %s", p.Index, p.Name, p.State, p.Since.Sub(l.start).Round(time.Second), p.Why))
	l.mu.Unlock()
	time.Sleep(time.Millisecond)
	l.mu.Lock()
	l.calls--
	l.mu.Unlock()
}

func (l *listener) take() []string {
	time.Sleep(time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// wantLines checks that each recorded line begins with the element of want at the same index. It
// skips lines with CONNECTING, because this state is not always reported.
func (l *listener) wantLines(t *testing.T, want ...string) {
	t.Helper()
	got := slices.DeleteFunc(l.take(), func(line string) bool { return strings.Contains(line, " CONNECTING ") })
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("PriorityChanged received\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// PriorityChanged is called with the priority in use, the time of the change, and the reason. It is
// also called when no priority can take calls. It is not called after Close.
func TestPriorityChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := newMemory(t), &listener{start: time.Now()}
		cc := m.newChannel("failover:///tier:///a1,tier:///b1", understudy.Options{PriorityChanged: l.priorityChanged})
		l.wantLines(t, "0 p0 tier:///a1 READY since 0s: ")
		m.setDown(true, "a0")
		l.wantLines(t, "1 p1 tier:///b1 READY since 1s: p0 tier:///a1: connection refused")
		m.setDown(true, "b0")
		l.wantLines(t, "-1 none TRANSIENT_FAILURE since 2s: no priority can take calls: p0 tier:///a1: ")
		m.setDown(false, "a0", "b0")
		m.await("b0")
		got := l.take()
		if len(got) == 0 || !strings.HasPrefix(got[0], "1 p1 tier:///b1 READY") && !strings.HasPrefix(got[0], "0 p0 tier:///a1 READY") ||
			!strings.HasSuffix(got[0], "can take calls again") {
			t.Errorf("PriorityChanged received %q, want a priority that can take calls again", got)
		}
		_ = cc.Close()
		m.setDown(true, "a0", "b0")
		l.wantLines(t)
		if l.maxCalls != 1 {
			t.Errorf("%d concurrent calls of PriorityChanged, want 1", l.maxCalls)
		}
	})
}

// If no source has a usable answer, the channel has no policies. PriorityChanged is called with
// priority -1.
func TestPriorityChangedWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := newMemory(t), &listener{start: time.Now()}
		m.newChannel("failover:///tier:///a0", understudy.Options{PriorityChanged: l.priorityChanged})
		l.wantLines(t, "-1 none TRANSIENT_FAILURE since 0s: failover: no entry has an address: tier:///a0: no such host")
	})
}

func TestPriorityChangedBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, received, release := newMemory(t), make(chan understudy.PriorityInUse, 10), make(chan bool)
		cc := m.newChannel("failover:///tier:///a1,tier:///b1", understudy.Options{PriorityChanged: func(p understudy.PriorityInUse) {
			received <- p
			<-release
		}})
		m.setDown(true, "a0")
		if got, err := m.call(cc); got != "b0" {
			t.Errorf("a call went to %q (%v) while PriorityChanged blocks, want b0", got, err)
		}
		_ = cc.Close()
		close(release)
		synctest.Wait()
		if n := len(received); n != 1 {
			t.Errorf("PriorityChanged was called %d times, want once", n)
		}
	})
}

func TestPriorityChangedOfIdleChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := newMemory(t), &listener{start: time.Now()}
		cc := m.newChannel("failover:///tier:///a1,tier:///b1", understudy.Options{PriorityChanged: l.priorityChanged}, grpc.WithIdleTimeout(time.Minute))
		l.wantLines(t, "0 p0 tier:///a1 READY since 0s: ")
		time.Sleep(time.Hour)
		m.setDown(true, "a0")
		l.wantLines(t)
		if got, err := m.call(cc); got != "b0" {
			t.Errorf("a call went to %q (%v), want b0", got, err)
		}
		l.wantLines(t, "1 p1 tier:///b1 READY since 1h0m2s: p0 tier:///a1: connection refused")
	})
}

func TestPriorityChangedOfTwoChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := newMemory(t), &listener{start: time.Now()}
		o := understudy.Options{PriorityChanged: l.priorityChanged}
		o.Sources = append(o.Sources, failover.WithResolvers(tierResolver{}))
		shared := append(m.dialOptions(), o.DialOptions()...)
		for range 2 {
			m.connect(grpc.NewClient("failover:///tier:///a1,tier:///b1", shared...))
		}
		m.setDown(true, "a0")
		failovers := 0
		for _, line := range l.take() {
			if strings.HasPrefix(line, "1 p1 tier:///b1 READY") {
				failovers++
			}
		}
		if failovers != 2 || l.maxCalls != 1 {
			t.Errorf("PriorityChanged received %d failovers with %d concurrent calls, want 2 failovers and no concurrency", failovers, l.maxCalls)
		}
	})
}
