package adsclient

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/topology"
)

// manager is a management server that can be stopped and started again.
type manager struct {
	t      *testing.T
	script adstest.Script

	mu       sync.Mutex
	listener *bufconn.Listener // nil while stopped
	server   *adstest.Server
}

func startManager(t *testing.T, script adstest.Script) *manager {
	m := &manager{t: t, script: script}
	m.start()
	t.Cleanup(m.stop)
	return m
}

func (m *manager) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listener = bufconn.Listen(1 << 20)
	m.server = adstest.Serve(m.listener, m.script)
}

func (m *manager) stop() {
	m.mu.Lock()
	server := m.server
	m.listener = nil
	m.mu.Unlock()
	server.Stop()
}

func (m *manager) dial(ctx context.Context, _ string) (net.Conn, error) {
	m.mu.Lock()
	listener := m.listener
	m.mu.Unlock()
	if listener == nil {
		return nil, fmt.Errorf("connection refused")
	}
	return listener.DialContext(ctx)
}

func (m *manager) target() Server {
	return Server{
		URI:         "passthrough:///" + m.t.Name(),
		Credentials: insecure.NewCredentials(),
		Identity:    "insecure",
		Node:        &corev3.Node{Id: "test"},
		MaxResponse: 1 << 20,
		Validate:    topology.Validate,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(m.dial)},
	}
}

// notes is a watcher that writes down what it is told.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, text)
}

func (n *notes) Endpoints(c *endpointv3.ClusterLoadAssignment) {
	n.add(fmt.Sprintf("%s:%d", c.GetClusterName(), len(c.GetEndpoints()[0].GetLbEndpoints())))
}

func (n *notes) Unknown(err error) { n.add(err.Error()) }

// take waits until nothing moves any more and returns what was added since.
func (n *notes) take() []string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list = nil
	return list
}

// watch starts to watch cluster in a bubble. The last cancel must be called in
// the bubble, too.
func (m *manager) watch(cluster string) (*notes, func()) {
	n := new(notes)
	return n, Watch(m.target(), cluster, n, nil)
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }
