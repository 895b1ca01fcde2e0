package priority

import (
	"testing"
	"testing/synctest"
	"time"

	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

func TestFailbackAfterUpdateLogsDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged.take()
		r := newRecorder()
		r.Update(update("p1"))
		r.Report("p1", ready)
		r.Update(update("p0", "p1"))
		wantLog(t, `WARNING lbtest:///target: move from p1 to p0, which is CONNECTING, after 0 ms: p0 is given time to connect`)
		r.Report("p0", failed)
		wantLog(t, `WARNING lbtest:///target: failover from p0 to p1, which is READY, after 0 ms: p0: refused`)
		r.Advance(20 * time.Second)
		r.Report("p0", ready)
		wantLog(t, `WARNING lbtest:///target: failback from p1 to p0, which is READY, after 20 s: p0 can take calls`)

		r.Script(map[string][]scenario.Reaction{"new": {{Report: failed}}})
		r.Update(update("new", "p0", "p1"))
		wantLog(t)
		r.Advance(30 * time.Second)
		r.Report("new", ready)
		wantLog(t, `WARNING lbtest:///target: failback from p1 p0 to p0 new, which is READY, after 30 s: p0 new can take calls`)
		r.Close()
	})
}

func TestFailbackLogsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged.take()
		r := newRecorder()
		defer r.Close()
		u := update("p0", "p1")
		u.Config.FailbackDelay = 30 * time.Second
		r.Update(u)
		r.Report("p0", ready)
		r.Report("p0", failed)
		synctest.Wait()
		r.Report("p1", ready)
		r.Advance(10 * time.Second)
		logged.take()
		r.Report("p0", ready)
		r.Advance(20 * time.Second)
		r.Report("p0", failed)
		r.Report("p0", ready)
		wantLog(t)
		r.Advance(30 * time.Second)
		wantLog(t, `WARNING lbtest:///target: failback from p1 to p0, which is READY, after 60 s: p0 can take calls again, and the failback delay of 30 s is over`)
		r.Report("p0", failed)
		wantLog(t, `WARNING lbtest:///target: failover from p0 to p1, which is READY, after 0 ms: p0: refused`)
		r.Report("p0", ready)
		synctest.Wait()
		r.Report("p1", failed) // The lower priority has failed, so calls return without a delay.
		wantLog(t, `WARNING lbtest:///target: failback from p1 to p0, which is READY, after 0 ms: p1: refused`)
		r.Report("p1", ready)
		u.Config.FailbackDelay = 0
		r.Update(u)
		r.Report("p0", failed)
		wantLog(t, `WARNING lbtest:///target: failover from p0 to p1, which is READY, after 0 ms: p0: refused`)
		r.Report("p0", ready)
		wantLog(t, `WARNING lbtest:///target: failback from p1 to p0, which is READY, after 0 ms: p0 can take calls again`)
	})
}
