package eds

import (
	"errors"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// managers are two management servers, each with its own backend. The first one rejects all streams
// while up is false.
type managers struct {
	up                          atomic.Bool
	first, second               string
	firstBackend, secondBackend string
}

func newManagers(t *testing.T) *managers {
	m := &managers{firstBackend: backend(t), secondBackend: backend(t)}
	m.first = serve(t, func(s *adstest.Stream) error {
		if !m.up.Load() {
			return errors.New("not up")
		}
		return errors.Join(s.Respond("1", "n", adstest.Cluster("c", m.firstBackend)), s.Drain())
	})
	m.second = serve(t, func(s *adstest.Stream) error {
		return errors.Join(s.Respond("1", "n", adstest.Cluster("c", m.secondBackend)), s.Drain())
	})
	return m
}

func TestServersInOrder(t *testing.T) {
	m := newManagers(t)
	c := newTraffic(t, "eds://"+m.first+","+m.second+"/c")
	c.stays(m.secondBackend, 10)
	m.up.Store(true)
	c.until(m.firstBackend)
	c.stays(m.firstBackend, 10)
	if logged.Count(m.second, "is used, in place of dns:///"+m.first) != 1 || logged.Count(m.first, "back to management server") != 1 {
		t.Error("the log does not name both servers at each change")
	}
}

func TestServersOfTheBootstrapInOrder(t *testing.T) {
	m := newManagers(t)
	one := func(address string) string {
		return `{"server_uri":"` + address + `","channel_creds":[{"type":"insecure"}]}`
	}
	bootstrapFile(t, `{"xds_servers":[`+one(m.first)+`,`+one(m.second)+`]}`)
	c := newTraffic(t, "eds:///c")
	c.stays(m.secondBackend, 10)
	m.up.Store(true)
	c.until(m.firstBackend)
	t.Run("second without credentials", func(t *testing.T) {
		bootstrapFile(t, `{"xds_servers":[`+one(m.first)+`,{"server_uri":"second:1"}]}`)
		expectError(t, build(t, "eds:///c"), "server second:1 has no channel_creds")
	})
}

// The first server becomes unreachable. With the rule of gRFC A95, the client must use the second
// one at once, although it has endpoints.
func TestFallbackOnReachabilityOnly(t *testing.T) {
	for name, set := range map[string]func(t *testing.T, m *managers) *traffic{
		"parameter": func(t *testing.T, m *managers) *traffic {
			return newTraffic(t, "eds://"+m.first+","+m.second+"/c?fallbackOnReachabilityOnly=true")
		},
		"option": func(t *testing.T, m *managers) *traffic {
			return newTraffic(t, "eds://"+m.first+","+m.second+"/c", grpc.WithResolvers(given.Builder(Scheme, given.Sources(WithFallbackOnReachabilityOnly()))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManagers(t)
			alive := make(chan struct{})
			m.first = serve(t, func(s *adstest.Stream) error {
				if s.Number == 1 {
					s.Recv() // wait for the request, because the client ignores an earlier response
					s.Respond("1", "n", adstest.Cluster("c", m.firstBackend))
					<-alive
				}
				return errors.New("dead")
			})
			c := set(t, m)
			c.stays(m.firstBackend, 1)
			close(alive)
			c.until(m.secondBackend)
		})
	}
}
