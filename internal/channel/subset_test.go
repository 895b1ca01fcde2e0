package channel_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy"
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
