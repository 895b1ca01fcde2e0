package priority

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/lb/shell"
)

type pickerFunc func(balancer.PickInfo) (balancer.PickResult, error)

func (f pickerFunc) Pick(info balancer.PickInfo) (balancer.PickResult, error) { return f(info) }

type namedConn struct {
	balancer.SubConn
	name string
}

// newOffer returns an offer of a child with one endpoint, or with an error.
func newOffer(name string, err error) offer {
	c, conn := newChildShare(time.Now(), share.Config{}, func() {}), newSubConn(namedConn{name: name})
	return offer{c, pickerFunc(func(balancer.PickInfo) (balancer.PickResult, error) {
		return balancer.PickResult{SubConn: conn}, err
	})}
}

// trip opens the breaker of an offer.
func trip(o offer) offer {
	o.with(func(s *share.Share, now time.Duration) { s.Returned(now, time.Minute) })
	return o
}

// cut makes an offer that of a last priority that is full.
func cut(o offer) offer {
	o.with(func(s *share.Share, now time.Duration) {
		s.SetLast(now, false)
		for range 4 {
			s.End(now+2*time.Second, s.Begin(now, time.Second, "", nil), share.Refused)
		}
		s.SetLast(now, true)
	})
	return o
}

func ignore() {}

func TestOffers(t *testing.T) {
	drop, plain := status.Error(codes.Unavailable, "dropped"), errors.New("no connection")
	waits := balancer.ErrNoSubConnAvailable
	for name, test := range map[string]struct {
		picker offerPicker
		to     string
		err    error
	}{
		"the highest takes all":                {offerPicker{offers: []offer{newOffer("a", nil), newOffer("b", nil)}}, "a", nil},
		"a tripped one takes none":             {offerPicker{offers: []offer{trip(newOffer("a", nil)), newOffer("b", nil)}}, "b", nil},
		"a drop never spills":                  {offerPicker{offers: []offer{newOffer("a", drop), newOffer("b", nil)}}, "", drop},
		"an error spills":                      {offerPicker{offers: []offer{newOffer("a", plain), newOffer("b", nil)}}, "b", nil},
		"a priority without connection spills": {offerPicker{offers: []offer{newOffer("a", waits), newOffer("b", nil)}}, "b", nil},
		"the last result stands":               {offerPicker{offers: []offer{newOffer("a", plain), newOffer("b", waits)}, shed: ignore}, "", waits},
		"the last result stands, not refused":  {offerPicker{offers: []offer{newOffer("a", plain), trip(newOffer("b", nil))}, shed: ignore}, "", plain},
		"refused":                              {offerPicker{offers: []offer{trip(newOffer("a", nil)), trip(newOffer("b", nil))}, shed: ignore}, "", errShed},
		"an inner policy refuses none":         {offerPicker{offers: []offer{trip(newOffer("a", nil)), trip(newOffer("b", nil))}}, "b", nil},
		"calls wait for another":               {offerPicker{offers: []offer{trip(newOffer("a", nil))}, awaited: true, shed: ignore}, "", waits},
		"calls in an inner policy wait, too":   {offerPicker{offers: []offer{trip(newOffer("a", nil))}, awaited: true}, "", waits},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := test.picker.Pick(balancer.PickInfo{})
			to := ""
			if conn, ok := result.SubConn.(namedConn); ok && err == nil {
				to = conn.name
			}
			if !errors.Is(err, test.err) || err == nil && test.err != nil || to != test.to {
				t.Errorf("to %q, %v; want %q, %v", to, err, test.to, test.err)
			}
		})
	}
}

// While the last priority takes some calls, others are refused and do not wait for a priority that
// connects.
func TestNoCallWaitsWhileAnotherIsTaken(t *testing.T) {
	p := offerPicker{offers: []offer{cut(newOffer("a", nil))}, awaited: true, shed: ignore}
	taken, refused := 0, 0
	for range 1000 {
		switch _, err := p.Pick(balancer.PickInfo{}); {
		case err == nil:
			taken++
		case errors.Is(err, errShed):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if taken == 0 || refused == 0 || taken+refused != 1000 {
		t.Errorf("%d calls are taken and %d refused, want some and the others", taken, refused)
	}
}

// An open breaker takes a call each second that no other priority takes.
func TestProbeOfCallsThatNobodyTakes(t *testing.T) {
	o := trip(newOffer("a", nil))
	o.start = o.start.Add(-2 * time.Second)
	p := offerPicker{offers: []offer{o}, shed: ignore}
	if _, err := p.Pick(balancer.PickInfo{}); err != nil {
		t.Errorf("after two seconds: %v, want a probe", err)
	}
	if _, err := p.Pick(balancer.PickInfo{}); !errors.Is(err, errShed) {
		t.Errorf("at the same time: %v, want %v", err, errShed)
	}
}

func TestResultOf(t *testing.T) {
	for _, test := range []struct {
		code           codes.Code
		sent, received bool
		want           share.Result
	}{
		{codes.OK, true, true, share.Good},
		{codes.NotFound, true, true, share.Good},
		{codes.DeadlineExceeded, true, false, share.Expired},
		{codes.DeadlineExceeded, true, true, share.Partial},
		{codes.DeadlineExceeded, false, false, share.Cancelled},
		{codes.Canceled, true, false, share.Cancelled},
		{codes.Canceled, true, true, share.Partial},
		{codes.Unavailable, true, true, share.Unavailable},
		{codes.Unavailable, true, false, share.Lost},
		{codes.Unavailable, false, false, share.Cancelled},
		{codes.ResourceExhausted, true, true, share.Refused},
		{codes.ResourceExhausted, true, false, share.Cancelled},
		{codes.Internal, true, true, share.Failed},
		{codes.Internal, true, false, share.Cancelled},
		{codes.Unknown, true, true, share.Failed},
		{codes.DataLoss, true, false, share.Failed},
	} {
		info := &balancer.DoneInfo{Err: status.Error(test.code, ""), BytesSent: test.sent, BytesReceived: test.received}
		if got := resultOf(info); got != test.want {
			t.Errorf("%v, sent %v, received %v: %v, want %v", test.code, test.sent, test.received, got, test.want)
		}
	}
}

// What the policies below see of a call that was refused or late.
func TestDoneBelow(t *testing.T) {
	full := balancer.DoneInfo{Err: status.Error(codes.ResourceExhausted, ""), BytesSent: true, BytesReceived: true}
	c := newChildShare(time.Now(), share.Config{}, func() {})
	var seen []codes.Code
	below := func(info balancer.DoneInfo) {
		shell.Judge(&info)
		seen = append(seen, status.Code(info.Err))
	}
	c.untimed(share.Stamp{}, nil, below)(full)
	c.begin(balancer.PickInfo{}, nil, below, false)(full)
	c.begin(balancer.PickInfo{}, nil, nil, false)(full)
	c.untimed(share.Stamp{}, nil, nil)(balancer.DoneInfo{})
	c.untimed(share.Stamp{}, nil, below)(balancer.DoneInfo{Err: status.Error(codes.Internal, ""), BytesSent: true, BytesReceived: true})
	if len(seen) != 3 || seen[0] != codes.OK || seen[1] != codes.OK || seen[2] != codes.Internal {
		t.Errorf("below are seen %v, want two answers and INTERNAL", seen)
	}

	// One of three endpoints is late again and again, while the others are not.
	c = newChildShare(time.Now().Add(-time.Hour), share.Config{}, func() {})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var endpoints [3]share.Endpoint
	answered := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
	seen = nil
	for n := range 9 {
		done := c.begin(balancer.PickInfo{Ctx: ctx}, &endpoints[n%3], below, false)
		if n%3 == 0 && n > 0 {
			c.start = c.start.Add(-60 * time.Millisecond)
		}
		done(answered)
	}
	if seen[6] != codes.DeadlineExceeded || seen[3] != codes.OK || seen[7] != codes.OK {
		t.Errorf("below are seen %v, want DEADLINE_EXCEEDED for the second late answer", seen)
	}
}

// The Done functions of a child and of outlier detection are called once for each call, and the
// latter is the one of the time of the pick.
func TestEachDoneIsCalledOnce(t *testing.T) {
	for _, hasDone := range []bool{false, true} {
		for _, timed := range []bool{false, true} {
			var called []string
			record := func(name string) func(balancer.DoneInfo) {
				return func(balancer.DoneInfo) { called = append(called, name) }
			}
			conn, counted := newSubConn(namedConn{name: "a"}), record("before")
			conn.EndWith(func() *func(balancer.DoneInfo) { return &counted })
			o := offer{newChildShare(time.Now(), share.Config{}, func() {}), pickerFunc(func(balancer.PickInfo) (balancer.PickResult, error) {
				result := balancer.PickResult{SubConn: conn}
				if hasDone {
					result.Done = record("child")
				}
				return result, nil
			})}
			pick := func() balancer.PickResult {
				result, err := o.picker.Pick(balancer.PickInfo{})
				if timed {
					result = o.begin(balancer.PickInfo{}, result, false)
				} else {
					result = o.beginUntimed(conn, result, o.view.Load())
				}
				if err != nil || result.SubConn.(namedConn).name != "a" {
					t.Fatalf("picked %v, %v", result.SubConn, err)
				}
				return result
			}
			first := pick()
			after := record("after")
			conn.EndWith(func() *func(balancer.DoneInfo) { return &after })
			second := pick()
			end(second)
			end(first)
			want := "[after before]"
			if hasDone {
				want = "[after child before child]"
			}
			if got := fmt.Sprint(called); got != want {
				t.Errorf("child has one: %v, timed: %v: %s are called, want %s", hasDone, timed, got, want)
			}
		}
	}
}

// An untimed call that expires says nothing about an endpoint that has just answered, while most
// endpoints are full.
func TestUntimedCallOfFullEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, conn := newChildShare(time.Now(), share.Config{}, func() {}), newSubConn(namedConn{name: "a"})
		expired := balancer.DoneInfo{Err: errLate, BytesSent: true}
		nothing := false
		below := func(info balancer.DoneInfo) {
			judged, ok := info.Err.(*shell.Judged)
			nothing = ok && judged.Nothing
		}
		conn.EndWith(func() *func(balancer.DoneInfo) { return &below })
		call := func(took time.Duration, info balancer.DoneInfo) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			done := c.begin(balancer.PickInfo{Ctx: ctx}, conn.endpointIn(c), nil, false)
			time.Sleep(took)
			done(info)
		}
		good := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
		call(time.Millisecond, good)
		call(time.Second, expired)
		call(time.Second, expired)
		call(time.Millisecond, good)
		for _, want := range []bool{true, false} {
			if conn.untimed(c, c.view.Load())(expired); nothing != want {
				t.Errorf("the call says nothing: %v, want %v", nothing, want)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// Untimed calls share a Done function only until an error: in a row of errors, only calls that have
// begun after the first one count.
func TestRowOfUntimedCalls(t *testing.T) {
	failed := balancer.DoneInfo{Err: status.Error(codes.Internal, ""), BytesSent: true, BytesReceived: true}
	for name, together := range map[string]bool{"begun before the first has failed": true, "one after the other": false} {
		o := newOffer("a", nil)
		begin := func() balancer.PickResult {
			result, err := o.picker.Pick(balancer.PickInfo{})
			if err != nil {
				t.Fatal(err)
			}
			return o.beginUntimed(result.SubConn.(*subConn), result, o.view.Load())
		}
		begin()
		o.childShare = newChildShare(time.Now(), share.Config{}, func() {}) // Overflow was off in between
		var begun []balancer.PickResult
		for range 20 {
			result := begin()
			if begun = append(begun, result); !together {
				result.Done(failed)
			}
		}
		for _, result := range begun {
			if together {
				result.Done(failed)
			}
		}
		if tripped := o.current().Depth == share.Tripped; tripped == together {
			t.Errorf("twenty calls %s: the breaker is open: %v", name, tripped)
		}
	}
}

// After an update has turned Overflow off, subchannels are still unwrapped.
func TestUnwrapper(t *testing.T) {
	u := unwrapper{newOffer("a", nil).picker}
	if result, err := u.Pick(balancer.PickInfo{}); err != nil || result.SubConn.(namedConn).name != "a" || result.Done != nil {
		t.Errorf("picked %v, %v", result, err)
	}
	failed := unwrapper{shell.Failing(errors.New("broken"))}
	if err := failed.Failure(); err == nil || err.Error() != "broken" {
		t.Errorf("Failure is %v", err)
	}
}

// A timed call is offered after the child's pick. If the priority does not take it, the child learns
// that the call has not begun.
func TestTimedCallThatIsNotTaken(t *testing.T) {
	c, conn := newChildShare(time.Now(), share.Config{}, func() {}), newSubConn(namedConn{name: "a"})
	var ended []balancer.DoneInfo
	o := offer{c, pickerFunc(func(balancer.PickInfo) (balancer.PickResult, error) {
		return balancer.PickResult{SubConn: conn, Done: func(info balancer.DoneInfo) { ended = append(ended, info) }}, nil
	})}
	for range 8 { // until then, the calls count as streams
		result, err := o.pickTimed(balancer.PickInfo{})
		if err != nil {
			t.Fatal(err)
		}
		end(result)
	}
	for range 5 {
		if _, err := o.pickTimed(balancer.PickInfo{}); err != nil {
			t.Fatal(err)
		}
	}
	c.start = c.start.Add(-time.Second) // of silence
	if !o.take() {
		t.Fatal("a silent priority does not take a call after a second")
	}
	if _, err := o.pickTimed(balancer.PickInfo{}); err != nil {
		t.Fatal(err)
	}
	c.view.Store(&share.View{Free: true, Every: 2}) // as a pick on another core has seen it
	ended = nil
	taken, err := true, error(nil)
	for range 4 {
		if _, taken, err = o.offer(&balancer.PickInfo{}); !taken || err != nil {
			break
		}
	}
	if taken || err != nil || len(ended) != 1 || ended[0].BytesSent {
		t.Errorf("a call to a silent priority is taken: %v, %v; the child's Done is called with %v, want once with nothing", taken, err, ended)
	}
}

// After an update has turned Overflow off and another one on again, the endpoints are the same and the
// shares are new.
func TestEndpointsOfNewShare(t *testing.T) {
	conns := []*subConn{newSubConn(namedConn{name: "a"}), newSubConn(namedConn{name: "b"})}
	for _, order := range [][]int{{0, 1}, {1, 0}, {0, 1}} {
		next := 0
		o := offer{newChildShare(time.Now().Add(-time.Minute), share.Config{}, func() {}), pickerFunc(func(balancer.PickInfo) (balancer.PickResult, error) {
			next++
			return balancer.PickResult{SubConn: conns[order[next-1]]}, nil
		})}
		for range order {
			result, err := o.pickTimed(balancer.PickInfo{})
			if err != nil {
				t.Fatal(err)
			}
			end(result)
		}
	}
}

// One call in every is timed, in random gaps.
func TestIsTimed(t *testing.T) {
	conn := newSubConn(namedConn{name: "a"})
	last, longest, timed := 0, 0, 0
	for n := range 64_000 {
		if conn.isTimed(64) {
			timed++
			longest = max(longest, n-last)
			last = n
		}
	}
	if timed < 900 || timed > 1100 || longest < 100 || longest > 127 {
		t.Errorf("%d calls of 64,000 are timed, the longest gap is %d; want about 1,000, and 127", timed, longest)
	}
}
