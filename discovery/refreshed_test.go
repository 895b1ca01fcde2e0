package discovery_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
)

func refreshed(t *testing.T, z *zone, cc *channel, every time.Duration, removeAfter int) resolver.Resolver {
	t.Helper()
	z.start = time.Now()
	inner := discovery.FromResolver(z, target("zone:///z"), cc, resolver.BuildOptions{})
	return build(t, newSourceBuilder(discovery.Refreshed(inner, discovery.Refresh{Every: every, RemoveAfter: removeAfter})), cc)
}

// The time between two lookups must be the refresh interval plus or minus 10%, even if it is
// shorter than the 30 s pause of gRPC's resolver.
func TestRefreshInterval(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 10 * time.Second, 30 * time.Second, 31 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			z := &zone{answers: []string{"10.0.0.1:1"}, latency: 100 * time.Millisecond}
			cc := &channel{}
			r := refreshed(t, z, cc, every, 2)
			time.Sleep(20 * every)
			r.Close()
			lookups := z.takeLookups()
			if n := len(lookups); n < 16 || n > 22 {
				t.Errorf("every %v: %d lookups in 20 times that", every, n)
			}
			for i := range lookups[1:] {
				interval := lookups[i+1] - lookups[i] - z.latency
				if interval < every*9/10 || interval > every*11/10 {
					t.Errorf("every %v: lookup %d came %v after the previous one", every, i+1, interval)
				}
			}
			if got := cc.take(); got != `state 10.0.0.1:1["endpoints" "/"]` {
				t.Errorf("channel saw %s, want one update", got)
			}
		})
	}
}

// An address must be removed after removeAfter consecutive answers without it. A new address must
// be used at once.
func TestRefreshRemoveAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{answers: []string{"a:1 b:1", "b:1 c:1", "c:1 b:1", "c:1", "b:1 c:1", "c:1", "c:1", "c:1"}}
		cc := &channel{}
		r := refreshed(t, z, cc, 10*time.Second, 2)
		time.Sleep(2 * time.Minute)
		r.Close()
		want := []string{"a:1 b:1", "a:1 b:1 c:1", "b:1 c:1", "c:1"}
		var states []string
		for _, s := range want {
			line := "state"
			for a := range strings.FieldsSeq(s) {
				line += fmt.Sprintf(` %s["endpoints" "/"]`, a)
			}
			states = append(states, line)
		}
		if got := cc.take(); got != strings.Join(states, "\n") {
			t.Errorf("channel saw\n%s\nwant\n%s", got, strings.Join(states, "\n"))
		}
	})
}

// Errors, and answers without addresses, must not change the endpoints, and each must be logged
// once. The next lookup must follow after the interval, although gRPC's resolver waits for its
// backoff.
func TestRefreshAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{answers: []string{"a:1 b:1", "b:1", "", "", "!no server", "!no server"}}
		cc := &channel{}
		empty, failed := logged.Count("x: its resolver returned no addresses; the prev"), logged.Count("x: no server; the previous endpoints stay in use")
		r := refreshed(t, z, cc, 10*time.Second, 2)
		time.Sleep(10 * time.Minute)
		if got, want := cc.take(), `state a:1["endpoints" "/"] b:1["endpoints" "/"]`; got != want {
			t.Errorf("channel saw %s, want %s", got, want)
		}
		if e, f := logged.Count("x: its resolver returned no addresses; the prev")-empty, logged.Count("x: no server; the previous endpoints stay in use")-failed; e != 1 || f != 1 {
			t.Errorf("logged %d and %d times, want once each", e, f)
		}
		lookups := z.takeLookups()
		for i := range lookups[1:] {
			if interval := lookups[i+1] - lookups[i]; interval > 11*time.Second {
				t.Errorf("lookup %d came %v after the previous one", i+1, interval)
			}
		}
		z.setAnswers("b:1")
		time.Sleep(11 * time.Second)
		r.Close()
		if got, want := cc.take(), `state b:1["endpoints" "/"]`; got != want {
			t.Errorf("channel saw %s, want %s", got, want)
		}
	})
}

func TestRefreshWaitsForAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{answers: []string{"a:1", "b:1", "a:1"}, latency: 20 * time.Second}
		cc := &channel{}
		r := refreshed(t, z, cc, time.Second, 1)
		time.Sleep(70 * time.Second)
		r.Close()
		if n := strings.Count(cc.take(), "state"); n != 3 {
			t.Errorf("%d answers, want 3", n)
		}
	})
}

// A request for re-resolution must be passed to gRPC's resolver, which may delay the lookup. The
// next lookup must follow one interval after the answer.
func TestRefreshForwardsResolveNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{answers: []string{"a:1"}}
		cc := &channel{}
		r := refreshed(t, z, cc, 5*time.Minute, 2)
		time.Sleep(2 * time.Minute)
		for range 2 {
			r.ResolveNow(resolver.ResolveNowOptions{})
			time.Sleep(time.Second)
		}
		time.Sleep(4 * time.Minute)
		r.Close()
		if got := fmt.Sprint(z.takeLookups()); got != "[0s 2m0s 2m30s]" {
			t.Errorf("lookups at %s, want [0s 2m0s 2m30s]: at the first request, and 30 s later", got)
		}
	})
}

// After Close, which may be called at any time, there must be no lookup and no report. A goroutine
// that did not end would fail the synctest bubble.
func TestRefreshStopsOnClose(t *testing.T) {
	for step := range 25 {
		synctest.Test(t, func(t *testing.T) {
			z := &zone{answers: []string{"a:1", "b:1"}, latency: 300 * time.Millisecond}
			cc := &channel{}
			r := refreshed(t, z, cc, time.Second, 1)
			time.Sleep(time.Duration(step) * 100 * time.Millisecond)
			r.Close()
			synctest.Wait()
			cc.take()
			z.takeLookups()
			time.Sleep(time.Minute)
			if seen, asked := cc.take(), len(z.takeLookups()); seen != "" || asked != 0 {
				t.Errorf("closed after %d00 ms: channel saw %q, %d lookups", step, seen, asked)
			}
		})
	}
}

type restartErrorSource struct{ failStart atomic.Bool }

func (*restartErrorSource) Check(bool) error { return nil }

func (u *restartErrorSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	if u.failStart.Load() {
		return discovery.Started{}, errors.New("the refusal of this test")
	}
	_ = r.Update(discovery.Answer{Resolved: stateOf("a:1").Endpoints})
	return discovery.Started{}, nil
}

// If the source cannot be started again, the failure must be reported, and another attempt must
// follow.
func TestRefreshRestartError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cc, s := &channel{}, &restartErrorSource{}
		r := build(t, newSourceBuilder(discovery.Refreshed(s, discovery.Refresh{Every: 10 * time.Second, RemoveAfter: 2})), cc)
		before := logged.Count("the refusal of this test")
		s.failStart.Store(true)
		time.Sleep(time.Minute)
		if n := logged.Count("the refusal of this test") - before; n != 1 {
			t.Errorf("logged %d times, want once", n)
		}
		s.failStart.Store(false)
		time.Sleep(11 * time.Second)
		s.failStart.Store(true)
		time.Sleep(time.Minute)
		r.Close()
		if n := logged.Count("the refusal of this test") - before; n != 2 {
			t.Errorf("logged %d times, want a second time: it had been started again", n)
		}
		if got := cc.take(); got != `state a:1["endpoints" "/"]` {
			t.Errorf("channel saw %s", got)
		}
	})
}
