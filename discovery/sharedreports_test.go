package discovery_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

type reportLog struct {
	reports []string
	started discovery.Started
}

func startLogged(t *testing.T, s discovery.Source) *reportLog {
	t.Helper()
	l := &reportLog{}
	add := func(format string, args ...any) { l.reports = append(l.reports, fmt.Sprintf(format, args...)) }
	var err error
	l.started, err = s.Start(new(discovery.Receiver).With(discovery.Hooks{
		Update:      func(a discovery.Answer) error { add("answer%s", a.Version); return nil },
		Fail:        func(err error) { add("fail(%v)", err) },
		Confirm:     func() { add("confirm") },
		Unconfirmed: func(err error, since time.Time) { add("doubt(%v,%v)", err, since.IsZero()) },
		Rejected:    func(err error) { add("reject(%v)", err) },
		Trying:      func(text string) { add("try(%s)", text) },
		Mechanisms:  func(list []discovery.Mechanism) { add("list%d", len(list)) },
		Remembered:  func() map[string]discovery.Name { return map[string]discovery.Name{"a": {}} },
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.started.Close() })
	return l
}

func (l *reportLog) take() string {
	synctest.Wait()
	reports := strings.Join(l.reports, " ")
	l.reports = nil
	return reports
}

// All users of a shared source must get its reports. A user that joins later must get only the
// reports that still apply.
func TestSharedSourceReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{}
		source := discovery.Shared(t.Name(), 0, s)
		early := startLogged(t, source)
		if len(s.Remembered()) != 1 {
			t.Error("Remembered of the shared source is not that of its first channel")
		}
		lostErr := errors.New("lost")
		answer := func(version string) {
			a := flat.Answer(flat.Endpoint{Address: "10.0.0.1:1"})
			a.Version = version
			_ = s.Update(a)
		}
		for _, step := range []struct {
			report      func()
			early, late string
		}{
			{func() { s.Trying("dialling") }, "try(dialling)", "try(dialling)"},
			{func() { s.Fail(lostErr) }, "fail(lost)", "try(dialling) fail(lost)"},
			{func() { answer("1") }, "answer1", "answer1"},
			{func() { s.Rejected(lostErr) }, "reject(lost)", "answer1"},
			{func() { s.Unconfirmed(lostErr, time.Now()) }, "doubt(lost,false)", "answer1 doubt(lost,false)"},
			{func() { s.Confirm() }, "confirm", "answer1"},
			{func() { s.Unconfirmed(lostErr, time.Now()) }, "doubt(lost,false)", "answer1 doubt(lost,false)"},
			{func() { answer("2") }, "answer2", "answer2"},
			{func() { s.Unconfirmed(lostErr, time.Time{}) }, "doubt(lost,true)", "answer2 doubt(lost,true)"},
			{func() { answer("3") }, "answer3", "answer3 doubt(lost,true)"},
			{func() { s.Unconfirmed(nil, time.Time{}) }, "doubt(<nil>,true)", "answer3"},
			{func() { s.Fail(lostErr); s.Fail(errors.New("worse")) }, "fail(lost) fail(worse)", "answer3 fail(worse)"},
			{func() { s.raw.Confirm(); s.Fail(lostErr) }, "confirm fail(lost)", "answer3 fail(lost)"},
			{func() { s.Mechanisms([]discovery.Mechanism{{Name: "a", Source: failingSource{}}}) }, "list1", "list1"},
		} {
			step.report()
			if got := early.take(); got != step.early {
				t.Errorf("the early member got %q, want %q", got, step.early)
			}
			late := startLogged(t, source)
			got := strings.TrimSpace(strings.NewReplacer("confirm ", "", "doubt(<nil>,true)", "").Replace(late.take() + " ")) // ignore reports that change nothing
			if got != step.late {
				t.Errorf("after %q a late member got %q, want %q", step.early, got, step.late)
			}
			late.started.Close()
		}
	})
}

// A channel that hangs while it applies a report must not hold back the reports for the others, nor
// the source. When it goes on, it must get the latest reports in order, and may have missed others.
func TestHangingChannelDoesNotHoldBackOthers(t *testing.T) {
	for _, late := range []bool{false, true} { // whether the other channel is opened while the first one hangs
		synctest.Test(t, func(t *testing.T) {
			s := &fakeSource{}
			source := discovery.Shared(t.Name(), 0, s)
			var slow, quick reportLog
			release := make(chan struct{})
			open := func(l *reportLog, hang func()) {
				started, err := source.Start(new(discovery.Receiver).With(discovery.Hooks{
					Update: func(a discovery.Answer) error {
						hang()
						l.reports = append(l.reports, a.Version)
						return nil
					},
					Confirm:    func() { l.reports = append(l.reports, "confirm") },
					Fail:       func(err error) { l.reports = append(l.reports, err.Error()) },
					Mechanisms: func([]discovery.Mechanism) { l.reports = append(l.reports, "list") },
				}))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(started.Close)
			}
			open(&slow, func() { <-release })
			if !late {
				open(&quick, func() {})
			}
			go func() {
				_ = s.raw.Update(discovery.Answer{Version: "1"})
				for _, version := range []string{"2", "3"} {
					s.raw.Fail(errors.New("lost"))
					time.Sleep(time.Second)
					_ = s.raw.Update(discovery.Answer{Version: version})
					time.Sleep(time.Second)
				}
				s.raw.Confirm()
				s.raw.Fail(errors.New("gone"))
			}()
			want := "1 lost 2 lost 3 confirm gone"
			time.Sleep(time.Second / 2)
			if late {
				open(&quick, func() {})
			}
			time.Sleep(time.Minute)
			if got := quick.take(); got != want {
				t.Errorf("opened late %v: the other channel got %q, want %q", late, got, want)
			}
			close(release)
			if got := slow.take(); got != "1 3 confirm gone" {
				t.Errorf("the channel that hung got %q, want the answer that it was applying, and the latest reports", got)
			}
		})
	}
}
