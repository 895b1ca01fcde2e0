package eds

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// twoServers has two management servers, each with its own backend. The first server rejects all
// streams while isUp is false.
type twoServers struct {
	isUp                        atomic.Bool
	first, second               string
	firstBackend, secondBackend string
}

func newTwoServers(t *testing.T) *twoServers {
	m := &twoServers{firstBackend: backend(t), secondBackend: backend(t)}
	m.first = serve(t, func(s *adstest.Stream) error {
		if !m.isUp.Load() {
			return errors.New("not up")
		}
		return errors.Join(s.Respond("1", "n", adstest.Cluster("c", m.firstBackend)), s.Drain())
	})
	m.second = serve(t, func(s *adstest.Stream) error {
		return errors.Join(s.Respond("1", "n", adstest.Cluster("c", m.secondBackend)), s.Drain())
	})
	return m
}

func TestBootstrapServersInOrder(t *testing.T) {
	m := newTwoServers(t)
	serverJSON := func(address string) string {
		return `{"server_uri":"` + address + `","channel_creds":[{"type":"insecure"}]}`
	}
	bootstrapFile(t, `{"xds_servers":[`+serverJSON(m.first)+`,`+serverJSON(m.second)+`]}`)
	c := newTraffic(t, "eds:///c")
	c.wantAllCallsTo(m.secondBackend, 10)
	m.isUp.Store(true)
	c.awaitCallTo(m.firstBackend)
	if logged.Count(m.second, "is used instead of", m.first) != 1 || logged.Count(m.first, "back to management server") != 1 {
		t.Error("the log does not name both servers at each change")
	}
	t.Run("second without credentials", func(t *testing.T) {
		bootstrapFile(t, `{"xds_servers":[`+serverJSON(m.first)+`,{"server_uri":"second:1"}]}`)
		expectError(t, build(t, "eds:///c"), "server second:1 has the channel_creds []")
	})
}
