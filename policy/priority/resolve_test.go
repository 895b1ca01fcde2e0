package priority

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

// If the resolver state contains a function for requests for re-resolution, all requests must call
// it, even those of children with ignoreReresolutionRequests. None may go to the channel.
func TestReresolutionCallsFunctionInState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		defer r.Close()
		var mu sync.Mutex
		var requests []string
		u := update("p0", "p1")
		u.Ignore = []string{"p1"}
		r.Script(map[string][]scenario.Reaction{"p0": {{Report: failed}}})
		state := r.state(u)
		state.ResolverState = stateattr.SetResolveNow(state.ResolverState, func(child string, ignored bool) {
			mu.Lock()
			defer mu.Unlock()
			if ignored {
				child += ", ignored"
			}
			requests = append(requests, child)
		})
		if err := r.policy.UpdateClientConnState(state); err != nil {
			t.Fatal(err)
		}
		r.Take()
		r.Resolve("p0")
		r.Resolve("p1")
		if got := r.Take(); len(got) > 0 || !slices.Equal(requests, []string{"p0", "p1, ignored"}) {
			t.Errorf("policy did %q and called the function with %q, want p0 and p1, ignored", got, requests)
		}
		r.Update(u)
		r.Take()
		r.Resolve("p0")
		r.Resolve("p1")
		if got := r.Take(); !slices.Equal(got, []string{"resolve"}) || len(requests) != 2 {
			t.Errorf("policy did %q, want one resolve", got)
		}
	})
}

// The function in the resolver state expects the names of this policy's children, so the children
// must not get it.
func TestChildrenDoNotReceiveResolveNowFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		defer r.Close()
		state := r.state(update("p0"))
		state.ResolverState = hierarchy.Seal(stateattr.SetResolveNow(state.ResolverState, func(string, bool) {}))
		if err := r.policy.UpdateClientConnState(state); err != nil {
			t.Fatal(err)
		}
		if stateattr.ResolveNow(r.child("p0").last.ResolverState) != nil {
			t.Error("the child received the function")
		}
	})
}

func TestResolverErrorReachesAllChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		defer r.Close()
		r.ResolverError(errors.New("no such host"))
		want := []string{"publish TRANSIENT_FAILURE: priority: the resolver failed: no such host"}
		if got := r.Take(); !slices.Equal(got, want) {
			t.Errorf("without children: %q, want %q", got, want)
		}
		r.Update(update("p0", "p1", "p2"))
		r.Report("p0", failed)
		r.Report("p0", ready)
		r.Take()
		r.ResolverError(errors.New("no such host"))
		got := r.Take()
		scenario.SortSimultaneous(got)
		if !slices.Equal(got, []string{"resolver-error p0 no such host", "resolver-error p1 no such host"}) {
			t.Errorf("policy did %q, want a resolver error for p0 and p1", got)
		}
	})
}
