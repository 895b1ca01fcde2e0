package priority

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

// The debug page shows the priorities, since when they have their states, why they failed, and what
// happened.
func TestDebugPage(t *testing.T) {
	live.Enable()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		page := live.New(t.Name(), nil)
		r := newRecorder()
		defer page.Stop()
		defer r.Close()
		defer r.policy.(shell.Watchable).Watch()()
		synctest.Wait() // a snapshot is taken before the first update
		change := func(u scenario.Update) {
			u.Config.RemovedChildRetention = 0
			state := r.state(u)
			state.ResolverState = stateattr.SetChannel(state.ResolverState, &stateattr.Channel{Live: page})
			if err := r.policy.UpdateClientConnState(state); err != nil {
				t.Fatal(err)
			}
		}
		want := func(want string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			s := r.policy.(shell.Watchable).Snapshot()
			got := fmt.Sprint("unused ", s.Details.(shell.Priority).Unused)
			for _, c := range s.Children {
				d := c.Details.(shell.PriorityChild)
				got += fmt.Sprintf("; %s is %v since %v: %s", c.Title, d.CountsAs, d.Since.Sub(begin), d.Why)
			}
			if got != want {
				t.Errorf("the page shows\n%s\nwant\n%s", got, want)
			}
		}
		change(update("p0", "p1"))
		want("unused [p1]; p0 is CONNECTING since 0s: ")
		r.Report("p0", failed)
		want("unused []; p0 is TRANSIENT_FAILURE since 1s: refused; p1 is CONNECTING since 1s: ")
		change(update("p0"))
		want("unused []; p0 is TRANSIENT_FAILURE since 1s: refused")
		change(update("p0", "p1"))
		want("unused []; p0 is TRANSIENT_FAILURE since 1s: refused; p1 is CONNECTING since 3s: ")
		r.Report("p1", ready)
		want("unused []; p0 is TRANSIENT_FAILURE since 1s: refused; p1 is READY since 4s: ")
		var events []string
		for _, c := range live.Channels() {
			if c.Target == t.Name() {
				for _, e := range c.Events {
					events = append(events, e.Text)
				}
			}
		}
		for _, handle := range []string{"failed: p0: refused", "p1 is READY"} {
			if !slices.Contains(events, handle) {
				t.Errorf("the page shows the events\n%s\nwant %s", strings.Join(events, "\n"), handle)
			}
		}
	})
}
