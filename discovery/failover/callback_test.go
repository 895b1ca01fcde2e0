package failover

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/settle"
)

// The tests below cover answers during Build, and Close during an update. They run in synctest
// bubbles, which report a deadlock.

func TestAnswerDuringBuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, cc := newFakeBuilder(), &channel{}
		f.onBuild = func(r *fakeResolver) { r.answer("10.0.0.1:" + r.name) }
		r, err := build(f, cc, "1", "2")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		want := "state fake:1 [10.0.0.1:1/1] fake:2 [10.0.0.1:2/2]\n"
		if got := cc.take(); got != want {
			t.Errorf("channel saw %q, want one update, after all were built: %q", got, want)
		}
	})
}

func TestAnswerDuringResolveNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, cc := newFakeBuilder(), &channel{}
		r, err := build(f, cc, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		asked := false
		f.resolvers["a"].onResolveNow = func() { f.resolvers["a"].answer("10.0.1.2:1") }
		cc.onUpdate = func(resolver.State) {
			if !asked {
				asked = true
				stateattr.ResolveNow(cc.lastState)("fake:a", false)
			}
		}
		f.resolvers["a"].answer("10.0.1.1:1")
		synctest.Wait()
		want := "state fake:a [10.0.1.1:1/a]\nstate fake:a [10.0.1.2:1/a]\n"
		if got := cc.take(); got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

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

func TestCloseDuringUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, cc := newFakeBuilder(), &channel{}
		r, err := build(f, cc, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		cc.onUpdate = func(resolver.State) {
			f.resolvers["b"].answer("10.0.2.1:1")
			r.Close()
		}
		f.resolvers["a"].answer("10.0.1.1:1")
		synctest.Wait()
		if got := cc.take(); got != "state fake:a [10.0.1.1:1/a]\n" {
			t.Errorf("channel saw %q, want no update after close", got)
		}
		closed := strings.Fields(strings.ReplaceAll(f.take(), "closed ", ""))
		if slices.Sort(closed); !slices.Equal(closed, []string{"a", "b"}) {
			t.Errorf("closed %q, want each once", closed)
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

func TestAnswersDuringUpdateAreCombined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, cc := newFakeBuilder(), &channel{}
		r, err := build(f, cc, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		release := make(chan struct{})
		first := true
		cc.onUpdate = func(resolver.State) {
			if first {
				first = false
				<-release
			}
		}
		go f.resolvers["a"].answer("10.0.1.1:1")
		synctest.Wait()
		for i := range 9 {
			go f.resolvers["b"].answer(fmt.Sprintf("10.0.2.%d:1", i+1))
			synctest.Wait()
		}
		close(release)
		synctest.Wait()
		want := "state fake:a [10.0.1.1:1/a]\nstate fake:a [10.0.1.1:1/a] fake:b [10.0.2.9:1/b]\n"
		if got := cc.take(); got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	})
}

// If several resolvers answer concurrently, the updates of the channel must not overlap. The race
// detector checks this. The last update must contain the last answer of each entry.
func TestConcurrentAnswers(t *testing.T) {
	f, cc := newFakeBuilder(), &channel{}
	var resolveNow atomic.Pointer[func(string, bool)]
	cc.onUpdate = func(state resolver.State) {
		request := stateattr.ResolveNow(state)
		resolveNow.Store(&request)
	}
	r, err := build(f, cc, "a", "b", "c")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		wg.Go(func() {
			for i := range 200 {
				f.resolvers[name].answer(fmt.Sprintf("10.0.0.1:%d", i))
				r.ResolveNow(resolver.ResolveNowOptions{})
				if request := resolveNow.Load(); request != nil {
					(*request)("fake:"+name, false)
				}
			}
		})
	}
	wg.Wait()
	settle.Wait()
	want := "state fake:a [10.0.0.1:199/a] fake:b [10.0.0.1:199/b] fake:c [10.0.0.1:199/c]\n"
	if got := cc.take(); !strings.HasSuffix(got, want) {
		t.Errorf("the last update is %q, want %q", got[max(0, len(got)-len(want)):], want)
	}
	r.Close()
}
