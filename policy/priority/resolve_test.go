package priority

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

// If the resolver state contains a function for requests for re-resolution, all requests must call
// it, even those of children with ignoreReresolutionRequests. None may go to the channel. The function
// expects the names of this policy's children, so the children must not get it.
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
		if stateattr.ResolveNow(r.child("p0").last.ResolverState) != nil {
			t.Error("the child received the function")
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
