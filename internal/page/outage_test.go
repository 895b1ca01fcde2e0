package page

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/understudy-lb/understudy/discovery"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/scripttest"
)

// A priority is READY, but its endpoints return errors. The headline must say that calls fail.
func TestHeadlineShowsFailingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true, "b": true}}
		cc := openChannel(t, s, newEndpoint(0, "us-east/a", "a", 1), newEndpoint(0, "us-east/a", "b", 1))
		call := func(n int) {
			for range n {
				_, _ = healthpb.NewHealthClient(cc).Check(t.Context(), &healthpb.HealthCheckRequest{})
				time.Sleep(50 * time.Millisecond)
			}
			settle()
		}
		call(300)
		c, page := channel(t)
		if c.Failing() || c.WhyInUse != "" || c.Recent == nil || c.Recent.PerSecond < 15 || c.Recent.PerSecond > 21 {
			t.Errorf("before the failures: %+v, %q", c.Recent, c.WhyInUse)
		}
		wantTexts(t, page, "Calls go to p0 us-east/a, ", "/s.")
		s.failCalls = true
		call(50)
		if c, _ := channel(t); !c.Failing() {
			t.Errorf("after 2.5 s the page says: %s", c.Headline())
		}
		call(300)
		c, page = channel(t)
		if !c.Failing() || c.Recent.Failed != c.Recent.Ended || c.WhyInUse != "its calls fail with UNAVAILABLE" {
			t.Errorf("while all calls fail: %+v, %q", c.Recent, c.WhyInUse)
		}
		wantTexts(t, page, "/s, all failing: UNAVAILABLE.", `class="headline failing"`, "p0 us-east/a: its calls fail with UNAVAILABLE", "us-east/a, all failing: UNAVAILABLE.", `<a href="?help">What to look at first</a>`)
		s.failCalls = false
		call(300)
		if c, _ := channel(t); c.Failing() {
			t.Errorf("after the recovery: %+v", c.Recent)
		}
		time.Sleep(20 * time.Second)
		settle()
		if c, _ := channel(t); c.Recent != nil {
			t.Errorf("after 20 s without calls: %+v", c.Recent)
		}
	})
}

func TestNoPriorityInUseWhenCallsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		openChannel(t, &fakeSource{}, newEndpoint(0, "us-east/a", "a", 1), newEndpoint(1, "eu-west", "b", 1))
		c, page := channel(t)
		if c.InUse != "" || c.State != "TRANSIENT_FAILURE" || len(c.Why) != 2 || c.Tree.Children[1].Share != 0 {
			t.Errorf("in use is %q, state %s, reasons %q", c.InUse, c.State, c.Why)
		}
		wantTexts(t, page, "No priority can take calls.", `class="headline failing"`)
		if strings.Contains(page, ">in use<") || strings.Contains(page, "100 %") {
			t.Errorf("the page shows a priority as in use:\n%s", page)
		}
	})
}

// All calls to the last READY priority fail. The page must show the problem of the lower one.
func TestFailingPriorityShowsLowerPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true, "b": true}, query: overflow, failCalls: true}
		cc := openChannel(t, s, newEndpoint(0, "us-east/a", "a", 1), newEndpoint(0, "us-east/a", "b", 1), newEndpoint(1, "eu-west", "c", 1))
		for range 300 {
			_, _ = healthpb.NewHealthClient(cc).Check(t.Context(), &healthpb.HealthCheckRequest{})
			time.Sleep(50 * time.Millisecond)
		}
		settle()
		_, page := channel(t)
		wantTexts(t, page, "Calls go to p0 us-east/a, ", "all failing: UNAVAILABLE.", "Not p1 eu-west: connection refused by c:443", "2 ejected, none is left: they get the calls anyway")
	})
}

// After a failover, the page must show the reason for it while the higher priority reconnects.
// Before the failover, it must show the time that is left until the failover.
func TestReasonIsKeptWhilePriorityConnects(t *testing.T) {
	now := time.Now()
	c := &collection{now: now}
	p := shell.PriorityChild{CountsAs: core.Connecting, Failover: now.Add(5 * time.Second), Why: "connection refused by a:443"}
	for inUse, want := range map[bool]string{
		true:  "connecting, the next priority takes over in 5 s",
		false: "connection refused by a:443, connecting",
	} {
		child := &Child{InUse: inUse}
		if c.priority(child, p); child.Why != want {
			t.Errorf("in use %t: reason %q, want %q", inUse, child.Why, want)
		}
	}
}

func TestChannelsWithSameTargetHaveNumbers(t *testing.T) {
	for _, c := range []struct {
		twin bool
		want string
	}{{false, "dns:///a"}, {true, "dns:///a (channel 7)"}} {
		if got := (&Channel{ID: 7, Target: "dns:///a", Twin: c.twin}).Label(); got != c.want {
			t.Errorf("label = %q, want %q", got, c.want)
		}
	}
}

func TestHeadlineShowsDurationOfFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inUseSince, failingSince := time.Now().Add(-time.Hour), time.Now().Add(-8*time.Second)
		for state, want := range map[string]string{"TRANSIENT_FAILURE": "<small>for 8 s</small></p>", "READY": "<small>for 1h0m0s</small></p>"} {
			var page strings.Builder
			c := &Channel{Target: "dns:///a", State: state, Since: &failingSince, InUseSince: &inUseSince}
			if err := templates.ExecuteTemplate(&page, "channel", c); err != nil || !strings.Contains(page.String(), want) {
				t.Errorf("%s: %v, want %s:\n%s", state, err, want, &page)
			}
		}
	})
}

// The row of an endpoint that cannot be reached says when the next attempt to connect begins at the
// latest, if the program has chosen the longest backoff.
func TestNextAttemptToConnect(t *testing.T) {
	for _, most := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := &fakeSource{}
			scripttest.Open(t, t.Name(), []discovery.Mechanism{{Source: s}}, []given.Option{given.Set("MaxConnectBackoff", most)}, grpc.WithContextDialer(s.dial))
			s.Receiver.Update(flat.Answer(newEndpoint(0, "us-east/a", "a", 1)))
			settle()
			for range 30 {
				c, page := channel(t)
				e := c.Tree.Children[0].Below.Children[0].Below.Children[0]
				switch {
				case most == 0 && e.NextAttempt != nil:
					t.Errorf("the next attempt is said to begin before %v, although the backoff is unknown", e.NextAttempt)
				case most > 0 && (e.NextAttempt == nil || time.Until(*e.NextAttempt) > 2*time.Second || !strings.Contains(page, "; next attempt within ")):
					t.Errorf("the next attempt is said to begin before %v, want at most 2 s from %v on", e.NextAttempt, time.Now())
				}
				time.Sleep(700 * time.Millisecond)
				synctest.Wait()
			}
		})
	}
}
