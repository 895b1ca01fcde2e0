package page

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const overflow = "?overflow=true&warmStandby=1&outlierDetection=true"

// callEvery makes calls for a time, one each 20 ms.
func callEvery(t *testing.T, cc *grpc.ClientConn, duration time.Duration) {
	for range duration / (20 * time.Millisecond) {
		_ = call(t, cc)
		time.Sleep(20 * time.Millisecond)
	}
	synctest.Wait()
}

// refuseHalf refuses each call with a probability of a half.
func refuseHalf() error {
	if rand.IntN(2) == 0 {
		return status.Error(codes.ResourceExhausted, "full")
	}
	return nil
}

func good() error { return nil }

// The first priority is READY, and calls to it fail. The page must say that it takes only probes,
// that it is broken, and that calls go to the second one.
func TestPageShowsWhyReadyPriorityIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"b": true}, query: overflow, sick: func() error { return status.Error(codes.Internal, "broken") }}
		cc := openChannel(t, s, newEndpoint(0, "us-east", "sick", 1), newEndpoint(1, "eu-west", "b", 1))
		callEvery(t, cc, 3*time.Second)
		c, page := channel(t)
		p0, p1 := c.Tree.Children[0], c.Tree.Children[1]
		if p0.State != "READY" || p0.InUse || p0.Share != 0 || p0.Cause != "broken" || !p1.InUse || p1.Share != 1 || c.InUse != "p1 eu-west" || c.InUseSince != nil {
			t.Errorf("the channel is %+v, its priorities are %+v and %+v", c, p0, p1)
		}
		wantTexts(t, page, "Calls go to p1 eu-west, ", "Not p0 us-east: takes only probes: broken", "p0 us-east takes only probes: broken</li>")
		s.sick = good
		callEvery(t, cc, 10*time.Second)
		if c, _ := channel(t); !strings.HasPrefix(c.Announcement(), "p0 us-east takes some of the calls: broken") || c.Load() != "" {
			t.Errorf("after the recovery: %s (%q)", c.Announcement(), c.Load())
		}
		callEvery(t, cc, time.Minute)
		c, page = channel(t)
		if c.Cause != "" || c.InUse != "p0 us-east" || c.Tree.Children[0].Share != 1 {
			t.Errorf("a minute later the channel is %+v", c)
		}
		wantTexts(t, page, "Calls go to p0 us-east, ", `<polyline points="0,0.0 `, "p0 us-east takes all of its calls again</li>")
	})
}

// The first priority is full. Together, the shares of the two are all calls.
func TestPageShowsFullPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := &fakeSource{reachable: map[string]bool{"b": true}, query: overflow, sick: func() error {
			if n++; n%3 == 0 {
				return status.Error(codes.ResourceExhausted, "full")
			}
			return nil
		}}
		cc := openChannel(t, s, newEndpoint(0, "us-east", "sick", 1), newEndpoint(1, "eu-west", "b", 1))
		callEvery(t, cc, 3*time.Second)
		c, page := channel(t)
		p0, p1 := c.Tree.Children[0], c.Tree.Children[1]
		if p0.Share <= 0 || p0.Share >= 1 || math.Abs(p0.Share+p1.Share-1) > 1e-9 || !p0.InUse || !p1.InUse || c.Load() != "full" || c.Takes != p0.Share || c.Refused != 0 {
			t.Errorf("the channel is %+v, its priorities are %+v and %+v", c, p0, p1)
		}
		wantTexts(t, page, "p0 us-east takes ", " % of the calls: full, ", " % failing: RESOURCE_EXHAUSTED. The others go to p1 eu-west.", " % of its calls: full</span>", "What to look at first")
		if strings.Contains(page, "<li>Not") || strings.Contains(page, "on standby") || c.Alarming() {
			t.Errorf("the page shows p1 as unused:\n%s", page)
		}
	})
}

// No priority can carry the calls. The page must say how many are refused, and show why the lower
// priority does not take them.
func TestPageShowsRefusedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{query: overflow, sick: func() error {
			time.Sleep(10 * time.Millisecond)
			return nil
		}}
		cc := openChannel(t, s, newEndpoint(0, "us-east", "sick", 1), newEndpoint(1, "eu-west", "c", 1))
		callEvery(t, cc, time.Second)
		s.sick = func() error {
			time.Sleep(600 * time.Millisecond)
			return refuseHalf()
		}
		callEvery(t, cc, 30*time.Second)
		c, page := channel(t)
		if p0 := c.Tree.Children[0]; c.Refused <= 0 || math.Abs(p0.Share+c.Refused-1) > 1e-9 || c.Load() != "shed" || !c.Alarming() {
			t.Errorf("the channel is %+v, p0 is %+v", c, p0)
		}
		wantTexts(t, page, "Every priority is full: ", " % of the calls are refused.", "Not p1 eu-west: connection refused by c:443", "calls are refused: every priority is full</li>")
		if got := c.Announcement(); got != "Every priority is full: some of the calls are refused." {
			t.Errorf("announced is %q", got)
		}
	})
}
