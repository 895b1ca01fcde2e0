package failover

import (
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// The tests below cover answers during Build, and Close during an update. They run in synctest
// bubbles, which report a deadlock.

func TestAnswerDuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, cc := newFakeBuilder(), &channel{}
		r, err := build(f, cc, "a")
		if err != nil {
			t.Fatal(err)
		}
		f.resolvers["a"].onClose = func() {
			f.resolvers["a"].answer("10.0.1.1:1")
			f.resolvers["a"].fail("closed")
			r.ResolveNow(resolver.ResolveNowOptions{})
			r.Close()
		}
		r.Close()
		if got := cc.take() + f.take(); got != "closed a\n" {
			t.Errorf("saw %q, want nothing after close", got)
		}
	})
}

// ResolveNow of an entry's resolver must not be called while the resolver is being closed, or
// afterwards.
func TestCloseDuringResolveNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, cc := newFakeBuilder(), &channel{}
		r, err := build(f, cc, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		f.resolvers["a"].answer("10.0.1.1:1")
		f.resolvers["a"].onResolveNow = func() { <-release; f.add("answered a") }
		stateattr.ResolveNow(cc.lastState)("fake:a", false)
		synctest.Wait()
		r.Close()
		close(release)
		synctest.Wait()
		if got, want := f.take(), "asked a\nanswered a\nclosed "; !strings.HasPrefix(got, want) || strings.Count(got, "closed") != 2 {
			t.Errorf("resolvers saw %q, want %q, and each closed once", got, want)
		}
	})
}
