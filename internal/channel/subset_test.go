package channel_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/failover"
)

func (m *memoryNetwork) connectedAddresses(all []string) []string {
	time.Sleep(time.Second)
	return slices.DeleteFunc(slices.Clone(all), func(a string) bool { return m.connected(a) == 0 })
}

func (m *memoryNetwork) closeChannel(cc *grpc.ClientConn) {
	_ = cc.Close()
	time.Sleep(time.Second)
	synctest.Wait()
}

// A client connects to 20 of 500 endpoints, which get equal shares. Only clients with the same seed
// choose the same endpoints.
func TestClientConnectsToSubset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, all := newMemory(t), addressNames("a", 500)
		cc := m.newChannel("failover:///tier:///a500", understudy.Options{Subset: 20})
		first := m.connectedAddresses(all)
		if len(first) != 20 {
			t.Errorf("%d endpoints are connected, want 20", len(first))
		}
		got := make(map[string]int)
		for range 200 {
			address, err := m.call(cc)
			if got[address]++; err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range first {
			if got[a] != 10 {
				t.Errorf("%s answered %d of 200 calls, want 10", a, got[a])
			}
		}
		m.closeChannel(cc)
		sets := make(map[string]int)
		for _, target := range []string{"?subset=20", "?subset=20", "?subset=20&subsetSeed=7", "?subset=20&subsetSeed=7"} {
			cc := m.newChannel("failover:///tier:///a500"+target, understudy.Options{})
			sets[strings.Join(m.connectedAddresses(all), " ")]++
			m.closeChannel(cc)
		}
		if len(sets) != 3 {
			t.Errorf("four clients, two of them with the same seed, connected %d sets of endpoints, want 3", len(sets))
		}
	})
}

// A channel that was idle connects to the same subset again, even if several channels share
// DialOptions.
func TestSubsetOutlivesIdleMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, all := newMemory(t), addressNames("a", 200)
		o := understudy.Options{Subset: 5}
		shared := slices.Concat(m.dialOptions(), understudy.Options{Subset: 5, Sources: []discovery.SourceOption{failover.WithResolvers(tierResolver{})}}.DialOptions(), []grpc.DialOption{grpc.WithIdleTimeout(time.Minute)})
		sets := make(map[string]bool)
		for _, dial := range []func() *grpc.ClientConn{
			func() *grpc.ClientConn {
				return m.newChannel("failover:///tier:///a200", o, grpc.WithIdleTimeout(time.Minute))
			},
			func() *grpc.ClientConn { return m.connect(grpc.NewClient("failover:///tier:///a200", shared...)) },
			func() *grpc.ClientConn { return m.connect(grpc.NewClient("failover:///tier:///a200", shared...)) },
		} {
			cc := dial()
			before := m.connectedAddresses(all)
			sets[strings.Join(before, " ")] = true
			for range 3 {
				time.Sleep(2 * time.Minute)
				if state, n := cc.GetState(), m.connected(all...); state != connectivity.Idle || n != 0 {
					t.Fatalf("the channel is %v with %d connections, want IDLE and none", state, n)
				}
				cc.Connect()
				if after := m.connectedAddresses(all); len(before) != 5 || !slices.Equal(after, before) {
					t.Errorf("%q are connected after idle mode, want %q", after, before)
				}
			}
			m.closeChannel(cc)
		}
		if len(sets) != 3 {
			t.Errorf("three channels connected %d sets of endpoints, want a different set for each", len(sets))
		}
	})
}
