package channel_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/failover"
)

const largeStandby = "failover:///tier:///a2,tier:///b200?warmStandby=1&overflow=true"

func TestLargeStandbyIsPartlyConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		all := addressNames("b", 200)
		m.newChannel(largeStandby, understudy.Options{})
		time.Sleep(time.Second)
		if n := m.connected(all...); n != 20 {
			t.Errorf("%d endpoints of the standby are connected, want 20", n)
		}
		for range 4 {
			m.newChannel(largeStandby, understudy.Options{})
			time.Sleep(time.Second)
		}
		if n := m.connected(all...); n <= 40 {
			t.Errorf("five clients have %d endpoints of the standby connected, want more than 40", n)
		}
	})
}

func TestConnectedEndpointsOfLargeStandbyFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		all := addressNames("b", 200)
		cc := m.newChannel(largeStandby, understudy.Options{})
		time.Sleep(time.Second)
		chosen := slices.DeleteFunc(addressNames("b", 200), func(a string) bool { return m.connected(a) == 0 })
		m.setDown(true, chosen...)
		time.Sleep(time.Second)
		if n := m.connected(all...); n != 180 {
			t.Errorf("%d endpoints are connected, want the 180 that answer", n)
		}
		m.setDown(true, "a0", "a1")
		if got, err := m.call(cc); err != nil || got[0] != 'b' {
			t.Errorf("a call went to %q, %v", got, err)
		}
	})
}

func TestStandbyWithPickFirstHasOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.newChannel("failover:///tier:///a2,tier:///b200?warmStandby=1&endpointPolicy=pick_first", understudy.Options{})
		time.Sleep(time.Second)
		if n := m.connected(addressNames("b", 200)...); n != 1 || m.connected("b0") != 1 {
			t.Errorf("%d endpoints of the standby are connected, want only b0, the first of the list", n)
		}
	})
}

func TestLargeStandbyKeepsEndpointsAcrossUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		r := manual.NewBuilderWithScheme("moving")
		list := func(names []string) (s resolver.State) {
			for _, name := range names {
				s.Endpoints = append(s.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: name}}})
			}
			return s
		}
		all := addressNames("b", 200)
		r.InitialState(list(all))
		o := understudy.Options{Sources: []discovery.SourceOption{failover.WithResolvers(r)}}
		m.newChannel("failover:///tier:///a2,moving:///b?warmStandby=1", o)
		time.Sleep(time.Second)
		slices.Reverse(all)
		r.UpdateState(list(all))
		time.Sleep(time.Second)
		dialled := 0
		for _, address := range all {
			dialled += m.attempts(address)
		}
		if dialled != 20 {
			t.Errorf("%d connections were made, want 20", dialled)
		}
		gone := slices.DeleteFunc(slices.Clone(all), func(a string) bool { return m.connected(a) == 0 })[:10]
		r.UpdateState(list(slices.DeleteFunc(slices.Clone(all), func(a string) bool { return slices.Contains(gone, a) })))
		time.Sleep(time.Second)
		if n, old := m.connected(all...), m.connected(gone...); n != 20 || old != 0 {
			t.Errorf("%d endpoints are connected, %d of them gone, want 20 and none", n, old)
		}
	})
}
