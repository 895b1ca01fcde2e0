package adsclient

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// hole is a connection that, once cut, takes everything and gives nothing.
type hole struct {
	net.Conn
	cut *atomic.Bool
}

func (h hole) Write(b []byte) (int, error) {
	if h.cut.Load() {
		return len(b), nil
	}
	return h.Conn.Write(b)
}

// A server that is cut off without a word is noticed after keepalive's time and
// timeout: 5 minutes and 20 s, which every server allows, or what is set.
func TestServerThatIsCutOff(t *testing.T) {
	for _, test := range []struct {
		set  keepalive.ClientParameters
		want time.Duration
	}{
		{keepalive.ClientParameters{}, 5*time.Minute + 20*time.Second},
		{keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}, 25 * time.Second},
		{keepalive.ClientParameters{Time: 30 * time.Second}, 50 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := startManager(t, func(s *adstest.Stream) error {
				return errors.Join(s.Respond("1", "n", adstest.Cluster("a", "10.0.0.1:1")), s.Drain())
			})
			var cut atomic.Bool
			server := m.target()
			server.Keepalive = test.set
			server.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				c, err := m.dial(ctx, address)
				return hole{c, &cut}, err
			})}
			a, g := new(notes), new(gauge)
			defer Watch(server, "a", a, g)()
			expect(t, "a", a.take(), "a:1")
			cut.Store(true)
			pass(test.want - time.Second)
			if g.value.Load() != 1 {
				t.Errorf("%+v: the stream ended before %v", test.set, test.want)
			}
			pass(2 * time.Second)
			synctest.Wait()
			if g.value.Load() != 0 {
				t.Errorf("%+v: the stream is open after %v", test.set, test.want)
			}
		})
	}
}

// A stream pings as those who share it have set.
func TestKeepaliveIsPartOfWhatStreamsAreSharedBy(t *testing.T) {
	a, b := Server{}, Server{Keepalive: keepalive.ClientParameters{Time: time.Minute}}
	same := Server{Keepalive: keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 20 * time.Second}}
	if a.key() == b.key() || a.key() != same.key() {
		t.Error("streams are shared by others than those with the same keepalive")
	}
}
