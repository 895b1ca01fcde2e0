package adsclient

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// An outage must be reported with its start, the time of the last message and its reason. It must
// be reported again when the reason changes, and also to watchers that subscribe later.
func TestOutageIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, serveEndpoints(1))
		a, _ := follow("a", false, m)
		sleep(time.Hour)
		expect(t, "a", a.take(), "a:1")
		m.stop()
		ended := time.Now()
		sleep(10 * time.Minute)
		m.mu.Lock()
		m.refusal = "no route to host"
		m.mu.Unlock()
		sleep(10 * time.Minute)
		b, _ := follow("a", false, m)
		expect(t, "b", b.take(), "a:1")
		m.start()
		sleep(reconnectTime)
		a.take()
		b.take()
		const prefix = "management server passthrough:///TestOutageIsReported cannot be reached: "
		expectOutages(t, "a", a, prefix+"connection refused", prefix+"no route to host", "")
		expectOutages(t, "b", b, prefix+"no route to host", "")
		for _, o := range []*Outage{a.outages[0], a.outages[1], b.outages[0]} {
			if !o.LastMessage.Equal(ended) || o.Since.Sub(ended) > time.Second {
				t.Errorf("outage since %v, last message at %v, want both at %v", o.Since, o.LastMessage, ended)
			}
		}
	})
}

// The follower must learn about an outage of the server in use. If that server is reachable, the
// follower must learn about an outage of an earlier server in the list.
func TestOutageOfEarlierServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManagers(t, map[string]adstest.Script{"first": serveEndpoints(1), "second": serveEndpoints(2)})
		m["first"].stop()
		a, _ := follow("a", false, m["first"], m["second"])
		expect(t, "a", a.take(), "a:2")
		sleep(time.Hour)
		m["second"].stop()
		sleep(time.Hour)
		m["second"].start()
		sleep(reconnectTime)
		m["first"].start()
		sleep(reconnectTime)
		a.take()
		first := "management server passthrough:///first cannot be reached: connection refused; passthrough:///second is used"
		expectOutages(t, "a", a, first, "management server passthrough:///second cannot be reached: connection refused", first, "")
		if !a.outages[0].LastMessage.IsZero() || a.outages[1].LastMessage.IsZero() {
			t.Errorf("the outages are %+v and %+v, want LastMessage set only for the second server, which is in use", a.outages[0], a.outages[1])
		}
	})
}

// A program that reads a target once, as understudy explain does, uses the first snapshot. So the
// follower must learn about the outage of an earlier server before it gets the snapshot of a later
// one.
func TestOutageIsReportedBeforeSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManagers(t, map[string]adstest.Script{"first": serveEndpoints(1), "second": serveEndpoints(1)})
		m["first"].stop()
		var reported []int
		f := countingFollower{recordingFollower{new(recordingWatcher)}, &reported}
		target := Target{Cluster: "a", Needs: needs("a"), Servers: []Server{m["first"].serverConfig(), m["second"].serverConfig()}}
		defer Follow(target, f, nil).Stop()
		synctest.Wait()
		if len(reported) != 1 || reported[0] != 1 {
			t.Errorf("the snapshots followed %v outages, want one snapshot after one outage", reported)
		}
	})
}

// If the server in use is unreachable, the snapshot comes first, because a new snapshot looks
// confirmed.
func TestOutageIsReportedAfterSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, serveEndpoints(1))
		follow("a", false, m)
		synctest.Wait()
		m.stop()
		sleep(time.Minute)
		var reported []int
		f := countingFollower{recordingFollower{new(recordingWatcher)}, &reported}
		defer Follow(Target{Cluster: "a", Needs: needs("a"), Servers: []Server{m.serverConfig()}}, f, nil).Stop()
		synctest.Wait()
		if len(reported) != 1 || reported[0] != 0 || len(f.outages) != 1 {
			t.Errorf("the snapshots followed %v outages of %d, want one snapshot before one outage", reported, len(f.outages))
		}
	})
}

// countingFollower records how many outages were reported before each snapshot.
type countingFollower struct {
	recordingFollower
	reported *[]int
}

func (f countingFollower) Changed(Snapshot) { *f.reported = append(*f.reported, len(f.outages)) }

func expectOutages(t *testing.T, who string, n *recordingWatcher, want ...string) {
	t.Helper()
	var got []string
	for _, o := range n.outages {
		text := ""
		if o != nil {
			text = o.Err.Error()
		}
		got = append(got, text)
	}
	if len(got) != len(want) {
		t.Fatalf("%s received %q, want %q", who, got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s received %q, want %q", who, got[i], want[i])
		}
	}
}
