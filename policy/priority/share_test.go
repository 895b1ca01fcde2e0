package priority

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

// overflowing is a channel with overflow, whose priorities a and b are READY.
type overflowing struct {
	*stubbed
	t       *testing.T
	records testlog.Log
}

func newOverflowing(t *testing.T, metrics *lbtest.Recorder) *overflowing {
	o := &overflowing{t: t, stubbed: newStubbed(t, nil)}
	o.cc.Recorder = metrics
	handler := slog.NewTextHandler(&o.records, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == "target" {
			return slog.Attr{}
		}
		return a
	}})
	state := stateattr.SetChannel(resolver.State{}, &stateattr.Channel{Logger: slog.New(handler)})
	if err := o.update(state, `"overflow": true, "warmStandby": 2,`, "a", "b"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		o.report(name, connectivity.Ready, nil)
		synctest.Wait()
	}
	takeLogged()
	return o
}

// change changes the share of a priority, and waits until the policy has seen it.
func (o *overflowing) change(priority int, f func(s *share.Share, now time.Duration)) {
	o.cc.State().Picker.(*offerPicker).offers[priority].with(f)
	synctest.Wait()
}

func cutOnce(s *share.Share, now time.Duration) {
	for range 4 {
		s.End(now+2*time.Second, s.Begin(now, time.Second, "", nil), share.Refused)
	}
}

func open(s *share.Share, now time.Duration) {
	for range 10 {
		s.End(now+time.Second, s.Begin(now+time.Second, time.Second, "", nil), share.Failed)
		now += 100 * time.Millisecond
	}
}

func back(s *share.Share, now time.Duration) { s.Returned(now, time.Minute) }

func probe(s *share.Share, now time.Duration) {
	s.End(now, s.Begin(now, time.Second, "", nil), share.Good)
}

// grow answers a call well each tenth of a second.
func (o *overflowing) grow(priority int, duration time.Duration) {
	for range duration / (100 * time.Millisecond) {
		time.Sleep(100 * time.Millisecond)
		o.change(priority, probe)
	}
}

func (o *overflowing) wantRecords(want ...string) {
	o.t.Helper()
	synctest.Wait()
	got := strings.FieldsFunc(o.records.Take(), func(r rune) bool { return r == '\n' })
	if !slices.Equal(got, want) {
		o.t.Errorf("the Logger got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// A share is logged when it leaves 1, falls below a half, is 0 and is back at 1.
func TestFallsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOverflowing(t, &lbtest.Recorder{})
		o.change(0, cutOnce)
		wantLog(t, "WARNING :///: p0 a takes 70 % of its calls: full")
		o.wantRecords(`msg=share priority="p0 a" share=0.7 reason=full`)
		time.Sleep(3 * time.Second)
		o.change(0, cutOnce)
		wantLog(t, "WARNING :///: p0 a takes 49 % of its calls: full")
		o.wantRecords(`msg=share priority="p0 a" share=0.49 reason=full`)
		o.change(0, open)
		wantLog(t, "WARNING :///: p0 a takes only probes: broken")
		o.wantRecords(`msg=share priority="p0 a" share=0 reason=broken`)
		time.Sleep(time.Second)
		o.grow(0, 40*time.Second)
		wantLog(t, "WARNING :///: p0 a takes all of its calls again")
		o.wantRecords(`msg=share priority="p0 a" share=1`)
		o.change(0, back)
		wantLog(t)
		o.grow(0, 40*time.Second)
		wantLog(t, "WARNING :///: p0 a takes all of its calls again")
	})
}

// A share that goes up and down around a half for an hour is logged twice: when it leaves 1, and
// when it falls below a half. One that goes between 0 and 1 is logged at most each ten seconds.
func TestOscillationIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOverflowing(t, &lbtest.Recorder{})
		for range 360 {
			o.change(0, cutOnce)
			o.grow(0, 10*time.Second)
		}
		wantLog(t, "WARNING :///: p0 a takes 70 % of its calls: full", "WARNING :///: p0 a takes 45.5 % of its calls: full")
		o.grow(0, time.Minute)
		wantLog(t, "WARNING :///: p0 a takes all of its calls again")
		for range 100 {
			o.change(0, open)
			time.Sleep(500 * time.Millisecond)
			o.change(0, func(s *share.Share, now time.Duration) {
				s.SetLast(now, true)
				s.End(now, s.Begin(now, time.Second, "", nil), share.Good)
				s.SetLast(now, false)
			})
			time.Sleep(500 * time.Millisecond)
		}
		synctest.Wait()
		if lines := takeLogged(); len(lines) < 10 || len(lines) > 22 {
			t.Errorf("in 100 s, %d records are logged, want two each 10 s:\n%s", len(lines), strings.Join(lines, "\n"))
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if lines := takeLogged(); len(lines) > 1 {
			t.Errorf("20 s later, these are logged: %q", lines)
		}
	})
}

// Refused calls are logged when they begin, and ten seconds after the last one.
func TestShedCallsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOverflowing(t, &lbtest.Recorder{})
		o.change(0, cutOnce)
		o.change(1, func(s *share.Share, now time.Duration) {
			s.SetLast(now, false)
			cutOnce(s, now)
			s.SetLast(now, true)
		})
		takeLogged()
		o.wantRecords(`msg=share priority="p0 a" share=0.7 reason=full`, `msg=share priority="p1 b" share=0.7 reason=full`)
		refused := 0
		for range 25 {
			for range 100 {
				if _, err := o.cc.State().Picker.Pick(balancer.PickInfo{}); errors.Is(err, errShed) {
					refused++
				}
			}
			time.Sleep(time.Second)
		}
		wantLog(t, "WARNING :///: calls are refused: every priority is full")
		o.wantRecords("msg=shed")
		time.Sleep(20 * time.Second)
		wantLog(t, fmt.Sprintf("WARNING :///: no calls are refused any longer: %d were, in 30 s", refused))
		o.wantRecords(fmt.Sprintf(`msg="shed ended" calls=%d after=30s`, refused))
	})
}

// The gauge is the mean share of the READY priority over the channels to the target.
func TestMeanShareIsExported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &lbtest.Recorder{}
		want := func(a, b int64) {
			t.Helper()
			got := metrics.Export()
			if got["understudy.share :/// p0 a"] != a || got["understudy.share :/// p1 b"] != b {
				t.Errorf("exported %v, want %d and %d", got, a, b)
			}
		}
		one, two := newOverflowing(t, metrics), newOverflowing(t, metrics)
		want(100, 100)
		one.change(0, cutOnce)
		metrics.Export() // each channel reports the sum when it is asked, so that only the last one is right
		want(85, 100)
		two.change(0, open)
		metrics.Export()
		want(35, 100)
		two.policy.Close()
		want(70, 100)
		one.policy.Close()
		want(0, 0)
	})
}

// The debug page shows the lowest share in each ten seconds of the last ten minutes.
func TestHistoryOfShares(t *testing.T) {
	live.Enable()
	synctest.Test(t, func(t *testing.T) {
		o := newOverflowing(t, &lbtest.Recorder{})
		defer o.policy.(shell.Watchable).Watch()()
		time.Sleep(15 * time.Second)
		o.change(0, cutOnce)
		o.change(0, open)
		time.Sleep(time.Second)
		o.change(0, probe)
		read := func(age int) float64 {
			lowest := o.policy.(shell.Watchable).Snapshot().Children[0].Details.(shell.PriorityChild).Share().Lowest
			return lowest[len(lowest)-1-age]
		}
		if read(0) != 0 || read(1) != 1 {
			t.Errorf("the lowest shares are %v, and %v ten seconds before, want 0 and 1", read(0), read(1))
		}
		time.Sleep(95 * time.Second)
		if read(0) != 1./16 || read(8) != 1./16 || read(10) != 0 || read(11) != 1 {
			t.Errorf("later they are %v, %v, %v and %v, want 1/16 since the 0", read(0), read(8), read(10), read(11))
		}
		time.Sleep(time.Hour)
		if read(59) != 1./16 {
			t.Errorf("an hour later, the oldest is %v, want 1/16", read(59))
		}
	})
}
