package pickfirst

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"pgregory.net/rapid"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// These are the known differences from grpc-go's pick_first that appear in random schedules. A
// table in docs/pick-first.md explains them.
const (
	requestsResolution     = "requests re-resolution when all addresses failed"
	countsFailures         = "error says how many addresses failed"
	staysSticky            = "TRANSIENT_FAILURE until READY"
	publishesResolverError = "resolver error while sticky is published"
)

// TestDifferential runs random schedules on fake subchannels. Except for the known differences, the
// policy must behave like grpc-go's pick_first.
func TestDifferential(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		schedule := drawSchedule(rt)
		var err error
		synctest.Test(t, func(*testing.T) { err = compare(schedule, map[string]int{}) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func networkSteps(outcome core.State, addresses ...string) (steps []step) {
	for _, a := range addresses {
		steps = append(steps, step{op: "network", address: a, outcome: outcome})
	}
	return steps
}

func TestKnownDifferences(t *testing.T) {
	failedPass := append([]step{{op: "update", list: []string{"a", "b"}}},
		networkSteps(core.TransientFailure, "a", "a", "b", "b")...)
	newList := append(slices.Clone(failedPass), step{op: "update", list: []string{"c"}})
	sticky := append(newList, networkSteps(core.TransientFailure, "c")...)
	for _, c := range []struct {
		schedule []step
		want     map[string]int
	}{
		{failedPass, map[string]int{requestsResolution: 1, countsFailures: 1}},
		{sticky, map[string]int{requestsResolution: 1, countsFailures: 1, staysSticky: 1}},
		{append(sticky, step{op: "resolver-error"}), map[string]int{requestsResolution: 1, countsFailures: 1, staysSticky: 1, publishesResolverError: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			seen := map[string]int{}
			if err := compare(c.schedule, seen); err != nil {
				t.Error(err)
			}
			if !maps.Equal(seen, c.want) {
				t.Errorf("after %v: %v, want %v", c.schedule, seen, c.want)
			}
		})
	}
}

func compare(schedule []step, differences map[string]int) error {
	ours := newRecorder(balancer.Get(Name), stateattr.EnableHealthListener)
	theirs := newRecorder(balancer.Get(grpcpickfirst.Name), grpcpickfirst.EnableHealthListener)
	defer ours.policy.Close()
	defer theirs.policy.Close()
	var list []string
	for i, s := range schedule {
		if s.op == "update" {
			next := names(unique(endpointAddresses(s.list)))
			if len(next) > 0 && slices.Equal(next, list) {
				continue // grpc-go's policy would begin a new pass (see TestDifferencesInFixedSchedules)
			}
			list = next
		}
		<-time.After(s.wait)
		if ours.State().ConnectivityState == connectivity.Idle {
			<-time.After(3 * time.Minute) // ends a backoff that only our policy has (see TestDifferencesInFixedSchedules)
		}
		before := ours.State().ConnectivityState
		a, b := ours.run(s), theirs.run(s)
		if err := compareEvent(before, theirs, a, b, differences); err != nil {
			return fmt.Errorf("%w\nafter %v\nours:   %q\ntheirs: %q", err, schedule[:i+1], a, b)
		}
	}
	return nil
}

func endpointAddresses(names []string) (list []resolver.Address) {
	for _, name := range names {
		list = append(list, resolver.Address{Addr: name})
	}
	return list
}

func compareEvent(before connectivity.State, theirs *recorder, a, b []string, differences map[string]int) error {
	actsA, statesA, resolveA := split(a)
	actsB, statesB, resolveB := split(b)
	if resolveB > 0 {
		return fmt.Errorf("grpc-go's policy requested re-resolution")
	}
	if resolveA > 0 {
		differences[requestsResolution]++
	}
	if !slices.Equal(actsA, actsB) {
		return fmt.Errorf("the operations on subchannels differ")
	}
	return compareStates(before, theirs, statesA, statesB, differences)
}

// split divides a log into actions on subchannels, published states, and the number of
// re-resolutions. It sorts the actions, because grpc-go iterates over a map.
func split(log []string) (actions, states []string, resolve int) {
	for _, line := range log {
		if line == "resolve" {
			resolve++
		} else if state, ok := strings.CutPrefix(line, "publish "); ok {
			states = append(states, state)
		} else {
			actions = append(actions, line)
		}
	}
	slices.Sort(actions)
	return actions, states, resolve
}

// compareStates compares the states that both policies published in one step. before is the state
// that our policy had published before this step.
func compareStates(before connectivity.State, theirs *recorder, a, b []string, differences map[string]int) error {
	if before == connectivity.TransientFailure && len(b) > 0 && b[0] == "CONNECTING" && !slices.Contains(a, "CONNECTING") {
		differences[staysSticky]++
		b = b[1:]
	}
	switch {
	case before == connectivity.TransientFailure && theirs.State().ConnectivityState == connectivity.Connecting && len(b) == 0 &&
		slices.Equal(a, []string{"TRANSIENT_FAILURE: name resolver error: nxdomain"}):
		differences[publishesResolverError]++
		return nil
	case len(a) != len(b):
		return fmt.Errorf("the published states differ")
	}
	for i := range a {
		stateA, errA, _ := strings.Cut(a[i], ": ")
		stateB, errB, _ := strings.Cut(b[i], ": ")
		if stateA != stateB {
			return fmt.Errorf("the published states differ")
		}
		if errA != errB {
			if err := compareErrors(errA, errB, differences); err != nil {
				return err
			}
		}
	}
	return nil
}

func compareErrors(a, b string, differences map[string]int) error {
	switch {
	case strings.Contains(a, "failed") && strings.HasSuffix(a, ": "+b):
		differences[countsFailures]++
		return nil
	case a == "the server is not healthy: unwell" && b == "pickfirst: health check failure: unwell":
		return nil
	case a == "no addresses: the resolver returned none, or none with a path to this policy" && b == "name resolver error: produced zero addresses":
		return nil
	}
	return fmt.Errorf("calls fail with %q, in grpc-go with %q", a, b)
}
