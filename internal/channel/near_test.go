package channel_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/scripttest"
)

func (m *memoryNetwork) dialHangingFor(addresses ...string) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		if slices.Contains(addresses, address) {
			m.mu.Lock()
			m.server(address).attempts++
			m.mu.Unlock()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return m.dial(ctx, address)
	})}
}

// The nearest group of endpoints hangs. The next groups are connected from the start, and get calls
// after the failover timeout. That is so even if the next group hangs, too.
func TestNearGroupsHang(t *testing.T) {
	for hangs, want := range map[string]string{"a0:1": "b0:1", "a0:1 b0:1": "c0:1"} {
		t.Run(hangs, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, start, s := newMemory(t), time.Now(), &scripttest.Source{}
				cc := scripttest.Open(t, "x", []discovery.Mechanism{{Source: s}}, []given.Option{
					given.Set("Overflow", true), given.Set("FailoverTimeout", 2*time.Second), given.Set("WarmStandby", 1),
					given.Set("Prefer", "zone"), given.Set("Zone", "a"), given.Set("Region", "r"),
				}, append(m.dialOptions(), m.dialHangingFor(strings.Fields(hangs)...)...)...)
				if err := s.Receiver.Update(flat.Answer(
					flat.Endpoint{Address: "a0:1", Locality: "r/a"}, flat.Endpoint{Address: "b0:1", Locality: "r/b"}, flat.Endpoint{Address: "c0:1", Locality: "s/c"},
				)); err != nil {
					t.Fatal(err)
				}
				var from string
				err := context.Canceled
				for err != nil && time.Since(start) < time.Minute {
					from, err = m.call(cc)
				}
				if elapsed := time.Since(start).Round(10 * time.Millisecond); from != want || elapsed != 2*time.Second {
					t.Errorf("%s answers after %v, want %s after 2s", from, elapsed, want)
				}
			})
		})
	}
}
