package adsclient

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// An outage must be reported with its beginning, the time of the last message, and a reason, which
// may change. It must also be reported to watchers that are added later.
func TestAnOutageIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := 1
		m := startManager(t, serving(&one))
		a, stop := follow(false, m)
		defer stop()
		pass(time.Hour)
		expect(t, "a", a.take(), "a:1")
		m.stop()
		ended := time.Now()
		pass(10 * time.Minute)
		m.mu.Lock()
		m.refusal = "no route to host"
		m.mu.Unlock()
		pass(10 * time.Minute)
		b, stopB := follow(false, m)
		defer stopB()
		expect(t, "b", b.take(), "a:1")
		m.start()
		pass(longest)
		a.take()
		b.take()
		const prefix = "management server passthrough:///TestAnOutageIsTold cannot be reached: "
		wantOutages(t, "a", a, prefix+"connection refused", prefix+"no route to host", "")
		wantOutages(t, "b", b, prefix+"no route to host", "")
		for _, o := range []*Outage{a.lost[0], a.lost[1], b.lost[0]} {
			if !o.Heard.Equal(ended) || o.Since.Sub(ended) > time.Second {
				t.Errorf("outage since %v, last message at %v, want both at %v", o.Since, o.Heard, ended)
			}
		}
	})
}

// Lost must report the outage of the server in use. If that server works, it must report the outage
// of an earlier server in the list.
func TestAnOutageOfAServerThatIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := 1, 2
		m := startManagers(t, map[string]adstest.Script{"first": serving(&one), "second": serving(&two)})
		m["first"].stop()
		a, stop := follow(false, m["first"], m["second"])
		defer stop()
		expect(t, "a", a.take(), "a:2")
		pass(time.Hour)
		m["second"].stop()
		pass(time.Hour)
		m["second"].start()
		pass(longest)
		m["first"].start()
		pass(longest)
		a.take()
		first := "management server passthrough:///first cannot be reached: connection refused; passthrough:///second is used"
		wantOutages(t, "a", a, first, "management server passthrough:///second cannot be reached: connection refused", first, "")
		if !a.lost[0].Heard.IsZero() || a.lost[1].Heard.IsZero() {
			t.Errorf("the outages are %+v and %+v, want Heard set only for the second server, which is in use", a.lost[0], a.lost[1])
		}
	})
}

func wantOutages(t *testing.T, who string, n *notes, want ...string) {
	t.Helper()
	var got []string
	for _, o := range n.lost {
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
