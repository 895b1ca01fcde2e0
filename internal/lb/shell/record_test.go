package shell

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fixedPicker is a picker whose Pick always returns the same result and error.
type fixedPicker struct {
	result balancer.PickResult
	err    error
}

func (o fixedPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) { return o.result, o.err }

func endCall(t *testing.T, r *Record, err error) {
	t.Helper()
	result, picked := (&Recorded{Picker: fixedPicker{}, Record: r}).Pick(balancer.PickInfo{})
	if picked != nil {
		t.Fatal(picked)
	}
	result.Done(balancer.DoneInfo{Err: err})
}

// Recent must count only calls with the status codes of a failing backend as failures.
func TestRecordCountsFailureCodes(t *testing.T) {
	counted := []codes.Code{codes.Unknown, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Internal, codes.Unavailable, codes.DataLoss}
	for _, code := range []codes.Code{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 34, 64, 66} {
		r := NewRecord()
		endCall(t, r, status.Error(code, "x"))
		var failures uint64
		var want []codes.Code
		if slices.Contains(counted, code) {
			failures, want = 1, []codes.Code{code}
		}
		if got := r.Recent(time.Now(), RecentSeconds); got.Ended != 1 || got.Failed != failures || !slices.Equal(got.Codes(), want) {
			t.Errorf("%v: %+v with the codes %v, want %d failures with %v", code, got, got.Codes(), failures, want)
		}
		failed := min(uint64(code), 1)
		if s, e, f := r.Calls(); s != 1 || e != 1 || f != failed {
			t.Errorf("%v: %d calls started, %d ended, %d failed; want 1, 1, %d", code, s, e, f, failed)
		}
	}
	r := NewRecord()
	endCall(t, r, errors.New("no status"))
	if got := r.Recent(time.Now(), RecentSeconds).Codes(); !slices.Equal(got, []codes.Code{codes.Unknown}) {
		t.Errorf("an error without a status has the codes %v, want UNKNOWN", got)
	}
}

// Recent must count only the calls of the given number of seconds. A reused slot must not contain
// calls of an earlier interval.
func TestRecordForgetsOldCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecord()
		for i := range uint64(30) {
			var err error
			if i < 10 {
				err = status.Error(codes.Internal, "x")
			}
			endCall(t, r, err)
			for seconds, intervals := range map[int64]uint64{2: 1, 4: 2, RecentSeconds: 5} {
				var failed uint64
				for j := i + 1 - min(i+1, intervals); j <= i && j < 10; j++ {
					failed++
				}
				got := r.Recent(time.Now(), seconds)
				if got.Ended != min(i+1, intervals) || got.Failed != failed || len(got.Codes()) > 0 != (failed > 0) {
					t.Errorf("call %d: in the last %d s, %+v, want %d calls, %d failed", i, seconds, got, min(i+1, intervals), failed)
				}
			}
			time.Sleep(slotSeconds * time.Second)
		}
		if s, e, f := r.Calls(); s != 30 || e != 30 || f != 10 {
			t.Errorf("%d calls started, %d ended, %d failed; want 30, 30, 10", s, e, f)
		}
		time.Sleep(RecentSeconds * time.Second)
		if got := r.Recent(time.Now(), RecentSeconds); got != (Recent{}) {
			t.Errorf("without calls, %+v", got)
		}
	})
}

// Recorded must call the Done function of the wrapped picker. If the wrapped picker returns an
// error, Recorded must not count a call.
func TestRecordedForwardsPick(t *testing.T) {
	r, ended := NewRecord(), 0
	p := &Recorded{Picker: fixedPicker{result: balancer.PickResult{Done: func(balancer.DoneInfo) { ended++ }}}, Record: r}
	result, _ := p.Pick(balancer.PickInfo{})
	if result.Done(balancer.DoneInfo{}); ended != 1 {
		t.Errorf("the picker's own Done was called %d times, want once", ended)
	}
	p.Picker = fixedPicker{err: balancer.ErrNoSubConnAvailable}
	if _, err := p.Pick(balancer.PickInfo{}); err != balancer.ErrNoSubConnAvailable {
		t.Errorf("error = %v, want the picker's", err)
	}
	if s, e, _ := r.Calls(); s != 1 || e != 1 || p.Picks() != 1 {
		t.Errorf("%d calls started, %d ended, %d picked; want one of each", s, e, p.Picks())
	}
}
