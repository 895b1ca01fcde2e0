package outlierdetection

import (
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// While an endpoint is ejected, the child must get no health updates. When the ejection ends, the
// child must get the last health update.
func TestHealthUpdatesDuringEjection(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(consecutiveConfig(), []string{"a", "b"})
		sc := h.cc.SubConn("a")
		health := func(state connectivity.State) {
			sc.ReportHealth(state, errors.New("x"))
			synctest.Wait()
		}
		health(connectivity.TransientFailure)
		health(connectivity.Ready)
		h.wantReceived("a TRANSIENT_FAILURE", "a READY")
		h.fail("a")
		h.wantReceived("a TRANSIENT_FAILURE")
		health(connectivity.Ready)
		health(connectivity.Connecting)
		h.wantReceived()
		h.Advance(40e9)
		h.wantReceived("a CONNECTING")
		health(connectivity.Ready)
		h.wantReceived("a READY")
	})
}

func TestEjectionIsReportedOnce(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(consecutiveConfig(), []string{"a", "b"})
		sc := h.cc.SubConn("a")
		reconnect := func() {
			sc.Report(connectivity.Idle, nil)
			sc.Report(connectivity.Ready, nil)
			synctest.Wait()
		}
		reconnect()
		h.fail("a")
		h.wantReceived()
		for range 2 {
			sc.ReportHealth(connectivity.Ready, nil)
			synctest.Wait()
		}
		h.wantReceived("a TRANSIENT_FAILURE")
		reconnect()
		for range 2 {
			sc.ReportHealth(connectivity.Ready, nil)
			synctest.Wait()
		}
		h.wantReceived("a TRANSIENT_FAILURE")
		h.Advance(40e9)
		h.wantReceived("a READY")
	})
}

// Health updates of an earlier connection must be dropped. After Shutdown, all health updates must
// be dropped.
func TestLateHealthUpdatesAreDropped(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(consecutiveConfig(), []string{"a", "b"})
		a := h.builder.built[0].conns["a"].(*subConn)
		late := balancer.SubConnState{ConnectivityState: connectivity.TransientFailure}
		before := a.run
		h.Connect("a", "disconnect")
		h.Connect("a", "connect")
		a.healthChanged(before, late)
		h.wantReceived()
		a.RegisterHealthListener(nil)
		if h.cc.SubConn("a").HasHealthListener() {
			t.Error("the health listener is still registered")
		}
		a.healthChanged(a.run, late)
		a.Shutdown()
		a.healthChanged(a.run, late)
		h.wantReceived()
	})
}

type user struct{}

func (user) PickerChanged() {}

func TestUncountedSubchannels(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(consecutiveConfig(), []string{"a", "b", "c"})
		p := h.inner()
		want := func(what string, n int64) {
			t.Helper()
			if got := p.uncountedSubConns.Load(); got != n {
				t.Errorf("%s: %d subchannels without a counting user, want %d", what, got, n)
			}
		}
		conns := h.builder.built[0].conns
		a, b := conns["a"].(*subConn), conns["b"].(*subConn)
		want("before Picked", 3)
		a.AddUser(user{})
		a.AddUser(user{})
		want("after Picked", 2)
		a.Shutdown()
		want("after its Shutdown", 2)
		b.Shutdown()
		want("after the Shutdown of another", 1)
		b.AddUser(user{})
		want("after Picked on a closed subchannel", 1)
	})
}

func TestNewSubchannelOfEjectedEndpoint(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(consecutiveConfig(), []string{"a", "b"})
		h.fail("a")
		h.wantReceived("a TRANSIENT_FAILURE")
		child := h.builder.built[0]
		child.conns["a"].Shutdown()
		delete(child.conns, "a")
		h.Update(consecutiveConfig(), []string{"a", "b"})
		h.wantReceived("a TRANSIENT_FAILURE")
		h.fail("b")
		h.wantReceived()
	})
}

// A subchannel with several addresses, or with an unlisted address, belongs to no endpoint. Its
// calls must not be counted.
func TestSubchannelsWithoutEndpoint(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(consecutiveConfig(), []string{"a", "b"})
		child := h.builder.built[0]
		for name, addresses := range map[string][]resolver.Address{"several": {{Addr: "a"}, {Addr: "b"}}, "unlisted": {{Addr: "c"}}} {
			conn, err := child.cc.NewSubConn(addresses, balancer.NewSubConnOptions{})
			if err != nil {
				t.Fatal(err)
			}
			child.conns[name] = conn
			for range 10 {
				h.Call(name, false)
			}
		}
		h.wantReceived()
		if _, err := child.cc.NewSubConn(nil, balancer.NewSubConnOptions{}); err == nil {
			t.Error("NewSubConn accepted an empty list of addresses")
		}
	})
}

// gRFC A50, "Update Addresses": a subchannel with a new address belongs to the endpoint with that
// address.
func TestUpdateAddresses(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Update(consecutiveConfig(), []string{"a", "b", "c"})
		child := h.builder.built[0]
		move := func(to ...string) {
			var addresses []resolver.Address
			for _, name := range to {
				addresses = append(addresses, resolver.Address{Addr: name})
			}
			child.cc.UpdateAddresses(child.conns["a"], addresses)
			synctest.Wait()
		}
		h.fail("a")
		h.wantReceived("a TRANSIENT_FAILURE")
		move("a", "b")
		h.wantReceived("a READY")
		if got := h.cc.SubConn("a").UpdatedAddresses(); len(got) != 2 {
			t.Errorf("the subchannel was given %v, want both addresses", got)
		}
		move("b")
		move("a")
		h.wantReceived("a TRANSIENT_FAILURE")
	})
}
