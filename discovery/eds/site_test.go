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
	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/awaiting"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

type site struct {
	t       *testing.T
	cc      told
	names   []string
	mu      sync.Mutex
	servers map[string]*bufconn.Listener
	stops   map[string]func()
}

func newSite(t *testing.T) *site {
	return &site{t: t, cc: told{channel: newChannel(), lines: make(chan string, 1000), config: new(atomic.Value)}, servers: make(map[string]*bufconn.Listener), stops: make(map[string]func())}
}

func (s *site) start(address string, script adstest.Script) {
	l := bufconn.Listen(1 << 20)
	server := adstest.Serve(l, script)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[address] = l
	s.stops[address] = server.Stop
}

func (s *site) stop(address string) {
	s.mu.Lock()
	stop := s.stops[address]
	delete(s.servers, address)
	delete(s.stops, address)
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (s *site) dial(ctx context.Context, address string) (net.Conn, error) {
	s.mu.Lock()
	l := s.servers[address]
	s.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("connection refused")
	}
	return l.DialContext(ctx)
}

// Scheme and Build make a site a resolver.Builder for DNS.
func (*site) Scheme() string { return "dns" }

func (s *site) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	s.names = append(s.names, target.Endpoint())
	return s, cc.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.9.0.1:443"}}}}})
}

func (*site) ResolveNow(resolver.ResolveNowOptions) {}
func (*site) Close()                                {}

func (s *site) builder(more ...given.Option) given.Resolvers {
	network := &adsclient.Network{Dial: s.dial}
	all := given.Sources(WithInsecure(), failover.WithResolvers(s), discovery.OwnOption(func(o *adsclient.Options) { o.Network = network }))
	return given.Builder(Scheme, append(more, all)...)
}

func (s *site) open(b given.Resolvers, text string) (closeIt func()) {
	s.t.Helper()
	r, err := b.Build(target(s.t, text), s.cc, resolver.BuildOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Close
}

func (s *site) end() {
	for address := range s.servers {
		s.stop(address)
	}
	synctest.Wait()
}

type told struct {
	*channel
	lines  chan string
	config *atomic.Value
}

func (c told) UpdateState(state resolver.State) error {
	if awaiting.Is(state) { // there is no answer yet, so calls wait
		return nil
	}
	var parts []string
	for _, e := range state.Endpoints {
		parts = append(parts, e.Addresses[0].Addr+" "+hierarchy.Path(e)[0])
	}
	config := state.ServiceConfig.Config.(rawConfig).text
	c.config.Store(config)
	_, priorities, _ := strings.Cut(config, `"priorities":`)
	list, _, _ := strings.Cut(priorities, "]")
	c.lines <- strings.Join(parts, ", ") + " of " + list + "]"
	return nil
}

func (c told) ReportError(err error) { c.lines <- "error " + err.Error() }

func (s *site) saw() string {
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

func (s *site) expect(want string) {
	s.t.Helper()
	if got := s.saw(); got != want {
		s.t.Errorf("channel saw\n%s\nwant\n%s", got, want)
	}
}

const server, second = "10.0.0.1:18000", "10.0.0.2:18000"
