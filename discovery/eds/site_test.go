package eds

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

type testNetwork struct {
	t         *testing.T
	cc        updateLog
	lookups   []string
	mu        sync.Mutex
	servers   map[string]*bufconn.Listener
	stopFuncs map[string]func()
}

func newTestNetwork(t *testing.T) *testNetwork {
	s := &testNetwork{t: t, cc: updateLog{channel: newChannel(), lines: make(chan string, 1000), config: new(atomic.Value)}, servers: make(map[string]*bufconn.Listener), stopFuncs: make(map[string]func())}
	t.Cleanup(s.stopAll)
	return s
}

func (s *testNetwork) start(address string, script adstest.Script) {
	l := bufconn.Listen(1 << 20)
	server := adstest.Serve(l, script)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[address] = l
	s.stopFuncs[address] = server.Stop
}

func (s *testNetwork) stop(address string) {
	s.mu.Lock()
	stop := s.stopFuncs[address]
	delete(s.servers, address)
	delete(s.stopFuncs, address)
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (s *testNetwork) dial(ctx context.Context, address string) (net.Conn, error) {
	s.mu.Lock()
	l := s.servers[address]
	s.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("connection refused")
	}
	return l.DialContext(ctx)
}

// Scheme and Build implement resolver.Builder for the scheme dns.
func (*testNetwork) Scheme() string { return "dns" }

func (s *testNetwork) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	s.lookups = append(s.lookups, target.Endpoint())
	return s, cc.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.9.0.1:443"}}}}})
}

func (*testNetwork) ResolveNow(resolver.ResolveNowOptions) {}
func (*testNetwork) Close()                                {}

func (s *testNetwork) builder(more ...given.Option) given.Resolvers {
	network := &adsclient.Network{Dial: s.dial}
	sources := given.Sources(WithInsecure(), failover.WithResolvers(s), discovery.OwnOption(func(o *adsclient.Options) { o.Network = network }))
	return given.Builder(Scheme, append(more, sources)...)
}

// openChannel opens a channel until closeChannel is called or the test ends.
func (s *testNetwork) openChannel(b given.Resolvers, text string) (closeChannel func()) {
	s.t.Helper()
	r, err := b.Build(target(s.t, text), s.cc, resolver.BuildOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	closeChannel = sync.OnceFunc(r.Close)
	s.t.Cleanup(closeChannel)
	return closeChannel
}

func (s *testNetwork) stopAll() {
	for address := range s.servers {
		s.stop(address)
	}
	synctest.Wait()
}

type updateLog struct {
	*channel
	lines  chan string
	config *atomic.Value
}

func (c updateLog) UpdateState(state resolver.State) error {
	if join.IsAwaiting(state) { // the source has not answered yet
		return nil
	}
	var parts []string
	for _, e := range state.Endpoints {
		parts = append(parts, e.Addresses[0].Addr+" "+hierarchy.Path(e)[0])
	}
	config := lbtest.StateJSON(state, state.ServiceConfig.Config.(rawConfig).text)
	c.config.Store(config)
	_, priorities, _ := strings.Cut(config, `"priorities":`)
	list, _, _ := strings.Cut(priorities, "]")
	c.lines <- strings.Join(parts, ", ") + " of " + list + "]"
	return nil
}

func (c updateLog) ReportError(err error) { c.lines <- "error " + err.Error() }

func (s *testNetwork) updates() string {
	synctest.Wait()
	var lines []string
	for {
		select {
		case line := <-s.cc.lines:
			lines = append(lines, line)
		default:
			return strings.Join(lines, "\n")
		}
	}
}

func (s *testNetwork) expect(want string) {
	s.t.Helper()
	if got := s.updates(); got != want {
		s.t.Errorf("channel saw\n%s\nwant\n%s", got, want)
	}
}

const server, second = "10.0.0.1:18000", "10.0.0.2:18000"
