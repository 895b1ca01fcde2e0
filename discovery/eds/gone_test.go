package eds

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func (s *testNetwork) backendAt(address string) (stop func()) {
	l := bufconn.Listen(1 << 20)
	b := grpc.NewServer()
	healthpb.RegisterHealthServer(b, health.NewServer())
	go func() { _ = b.Serve(l) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[address], s.stopFuncs[address] = l, b.Stop
	return func() { s.stop(address) }
}

// breakableConns holds the connections to management servers. breakAll makes these connections lose
// all data without closing them.
type breakableConns struct {
	*testNetwork
	mu         sync.Mutex
	breakFuncs []func(bool)
}

func (c *breakableConns) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := c.testNetwork.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	conn, cut := adstest.Cable(conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakFuncs = append(c.breakFuncs, cut)
	return conn, nil
}

func (c *breakableConns) breakAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cut := range c.breakFuncs {
		cut(false)
	}
}

// A management server disappears without closing its connections. Another server takes over its
// address, and then the endpoints move. When connections to the old endpoints fail, the client must
// check its stream to the server. Calls must reach the new endpoints within 36 s.
func TestServerDisappearsBeforeEndpointsMove(t *testing.T) {
	for about, target := range map[string]string{"endpoints": "/a", "a cluster": "/a?cds=true", "an aggregate": "/all?cds=true"} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &breakableConns{testNetwork: newTestNetwork(t)}
				oldCatalogue := adstest.NewCatalogue(adstest.Aggregate("all", "a"), adstest.EDS("a"), adstest.Cluster("a", "10.1.0.1:80"))
				c.start(server, oldCatalogue.Serve)
				stopOld := c.stopFuncs[server]
				defer stopOld()
				stop := c.backendAt("10.1.0.1:80")
				network := &adsclient.Network{Dial: c.dial}
				resolvers := given.Builder(Scheme, given.Sources(WithInsecure(), discovery.OwnOption(func(o *adsclient.Options) { o.Network = network })))
				conn, err := grpc.NewClient("eds://"+server+target, grpc.WithResolvers(resolvers), grpc.WithContextDialer(c.testNetwork.dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				call := func() {
					t.Helper()
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					defer cancel()
					if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
						t.Fatal(err)
					}
				}
				call()
				time.Sleep(5 * time.Second)
				c.breakAll()
				c.start(server, adstest.NewCatalogue(adstest.Aggregate("all", "a"), adstest.EDS("a"), adstest.Cluster("a", "10.1.0.2:80")).Serve)
				c.backendAt("10.1.0.2:80")
				stop()
				synctest.Wait()
				start := time.Now()
				call()
				if elapsed := time.Since(start); elapsed > 36*time.Second {
					t.Errorf("the new endpoints were used after %v, want at most 36s", elapsed)
				}
			})
		})
	}
}
