package priority

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.Capture()

func takeLogged() (lines []string) {
	for line := range strings.Lines(logged.Take()) {
		if head, text, ok := strings.Cut(line, ": [understudy] priority: "); ok {
			lines = append(lines, head[strings.LastIndex(head, " ")+1:]+" "+strings.TrimSpace(text))
		}
	}
	return lines
}

func wantLog(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := takeLogged(); !slices.Equal(got, want) {
		t.Errorf("logged\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func update(priorities ...string) scenario.Update {
	return scenario.Update{Config: scenario.DefaultConfig(priorities...)}
}

var (
	ready      = scenario.Report{State: core.Ready}
	idle       = scenario.Report{State: core.Idle}
	connecting = scenario.Report{State: core.Connecting}
	failed     = scenario.Report{State: core.TransientFailure, Tag: "refused"}
)

// With overflow, calls move before the child has failed. The log must say that it has lost its
// connections, but only if it does not come back within a second.
func TestLostConnectionsLogReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takeLogged()
		r := newRecorder()
		m := &lbtest.Recorder{}
		r.Recorder = m
		u := update("p0", "p1")
		u.Config.WarmStandby, u.Config.Overflow = 1, true
		r.Script(map[string][]scenario.Reaction{"p0": {{Report: ready}}, "p1": {{Report: ready}}})
		r.Update(u)
		r.Report("p0", connecting)
		r.Advance(999 * time.Millisecond)
		r.Report("p0", ready)
		r.Report("p0", connecting)
		wantLog(t)
		r.Advance(time.Second)
		wantLog(t, `WARNING lbtest:///target: failover from p0 to p1, which is READY, after 1 s: p0 has lost its connections`)
		r.Close()
		if n := m.Counts()["understudy.priority.failovers lbtest:///target p0 p1 lost"]; n != 1 {
			t.Errorf("counted %v, want one failover with the reason lost", m.Counts())
		}
	})
}

func TestFailoversAreLoggedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takeLogged()
		r := newRecorder()
		m := &lbtest.Recorder{}
		r.Recorder = m
		r.Update(update("p0", "p1", "p2"))
		wantLog(t)
		r.Report("p0", failed)
		wantLog(t, `WARNING lbtest:///target: failover from p0 to p1, which is CONNECTING, after 0 ms: p0: refused`)
		r.Report("p1", ready)
		wantLog(t)
		r.Advance(90 * time.Second)
		r.Report("p0", ready)
		wantLog(t, `WARNING lbtest:///target: failback from p1 to p0, which is READY, after 90 s: p0 can take calls`)
		r.Report("p0", connecting)
		r.Advance(10 * time.Second)
		wantLog(t, `WARNING lbtest:///target: failover from p0 to p1, which is READY, after 10 s: p0: did not connect within 10 s, last error: refused`)
		r.Update(update("p2"))
		wantLog(t, `WARNING lbtest:///target: move from p1 to p0 p2, which is CONNECTING, after 0 ms: p1 is no longer configured`)
		r.Update(update())
		r.Update(update("p2"))
		wantLog(t)
		r.Close()
		want := map[string]int64{
			"understudy.priority.failovers lbtest:///target p0 p1 failed":            1,
			"understudy.priority.failovers lbtest:///target p0 p1 timeout":           1,
			"understudy.priority.failovers lbtest:///target p1 p0 recovered":         1,
			"understudy.priority.failovers lbtest:///target p1 p0 p2 not_configured": 1,
		}
		if fmt.Sprint(m.Counts()) != fmt.Sprint(want) {
			t.Errorf("counted %v, want %v", m.Counts(), want)
		}
	})
}

func TestRefusedUpdatesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		defer r.Close()
		r.Script(map[string][]scenario.Reaction{"p0": {{Err: errors.New("bad")}}})
		takeLogged()
		r.Update(update("p0"))
		wantLog(t, `WARNING child "p0" refused its update and counts as failed: bad`,
			`WARNING lbtest:///target: no priority can take calls: p0: refused its update: bad`)
		r.Report("p0", idle)
		synctest.Wait()
		r.Update(update("p0"))
		wantLog(t, `WARNING lbtest:///target: p0 takes calls again, after 0 ms without a usable priority`,
			`WARNING child "p0" refused its update and stays IDLE: bad`)
	})
}

func TestEndpointsOfNoChildAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		defer r.Close()
		u := update("p0")
		u.Endpoints = []scenario.Endpoint{{Address: "10.0.0.1:80", Path: []string{"p0"}}, {Address: "10.0.0.2:80"}, {Address: "10.0.0.3:80", Path: []string{"p1"}}}
		want := `WARNING lbtest:///target: 2 of 3 endpoints belong to no child and get no calls, the first is [{Addr: "10.0.0.2:80", ServerName: "", }] with the path []`
		takeLogged()
		r.Update(u)
		wantLog(t, want)
		r.Update(u)
		wantLog(t)
		good := u
		good.Endpoints = u.Endpoints[:1]
		r.Update(good)
		wantLog(t)
		r.Update(u)
		wantLog(t, want)
	})
}

// An update that changes the order of the priorities is neither a failover nor a failback.
func TestSwappedPrioritiesLogMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takeLogged()
		r := newRecorder()
		standby := func(priorities ...string) scenario.Update {
			u := update(priorities...)
			u.Config.WarmStandby = 1
			return u
		}
		r.Script(map[string][]scenario.Reaction{"p0": {{Report: ready}}, "p1": {{Report: ready}}})
		r.Update(standby("p0", "p1"))
		r.Advance(time.Minute)
		r.Update(standby("p1", "p0"))
		wantLog(t, `WARNING lbtest:///target: move from p1 p0 to p0 p1, which is READY, after 0 ms: an update has put p0 p1 above it`)
		r.Close()
	})
}

// An update may end the connections of a priority, for example if its locality has another name.
func TestUpdateThatEndsConnectionsLogsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takeLogged()
		r := newRecorder()
		u := update("p0", "p1")
		u.Config.WarmStandby, u.Config.Overflow = 1, true
		r.Script(map[string][]scenario.Reaction{"p0": {{Report: ready}, {Report: connecting}}, "p1": {{Report: ready}}})
		r.Update(u)
		r.Advance(time.Minute)
		r.Update(u)
		r.Advance(time.Second)
		wantLog(t, `WARNING lbtest:///target: failover from p0 to p1, which is READY, after 0 ms: an update has given p0 other endpoints, which connect`)
		r.Close()
	})
}
