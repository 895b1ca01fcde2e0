package adsclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

type manager struct {
	t      *testing.T
	name   string
	script adstest.Script

	mu       sync.Mutex
	listener *bufconn.Listener
	server   *adstest.Server
	refusal  string
}

func startManager(t *testing.T, script adstest.Script) *manager {
	m := &manager{t: t, name: t.Name(), script: script}
	m.start()
	t.Cleanup(m.stop)
	return m
}

func startManagers(t *testing.T, scripts map[string]adstest.Script) map[string]*manager {
	managers := make(map[string]*manager)
	for name, script := range scripts {
		managers[name] = startManager(t, script)
		managers[name].name = name
	}
	return managers
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
	listener, refusal := m.listener, m.refusal
	m.mu.Unlock()
	if listener == nil {
		return nil, errors.New(cmp.Or(refusal, "connection refused"))
	}
	return listener.DialContext(ctx)
}

func (m *manager) serverConfig() Server {
	return Server{
		URI:         "passthrough:///" + m.name,
		Credentials: insecure.NewCredentials(),
		Node:        &corev3.Node{Id: "test"},
		MaxResponse: 1 << 20,
		Read:        parse,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(m.dial)},
	}
}

// Watch subscribes to a resource until cancel is called, as a Following does.
func Watch(server Server, typ *Type, name string, w Watcher, recorder estats.MetricsRecorder) (cancel func()) {
	c := clients.acquire(server, recorder)
	unwatch := c.watch(typ, name, w)
	return sync.OnceFunc(func() {
		unwatch()
		clients.release(c)
	})
}

func find(server Server) *client {
	clients.mu.Lock()
	defer clients.mu.Unlock()
	return clients.clients[server.key()]
}

func LastMessage(server Server) time.Time { return find(server).lastMessage() }

func EndpointsFailed(server Server) {
	if c := find(server); c != nil {
		c.endpointsFailed()
	}
}

var parsed atomic.Int64

func parse(m proto.Message) (any, error) {
	parsed.Add(1)
	if cla, ok := m.(*endpointv3.ClusterLoadAssignment); ok {
		_, _, err := messages.Read(cla)
		return m, err
	}
	return m, nil
}

type recordingWatcher struct {
	mu      sync.Mutex
	updates []string
	version string

	rejected []string
	outages  []*Outage
}

func (n *recordingWatcher) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.updates = append(n.updates, text)
}

func (n *recordingWatcher) Resource(r *Resource, version string) {
	n.mu.Lock()
	n.version = version
	n.mu.Unlock()
	if c, ok := r.Read.(*endpointv3.ClusterLoadAssignment); ok {
		n.add(fmt.Sprintf("%s:%d", c.GetClusterName(), len(c.GetEndpoints()[0].GetLbEndpoints())))
		return
	}
	n.add("cluster " + Clusters.nameOf(r.Read.(proto.Message)))
}

func (n *recordingWatcher) Unknown(err error, _ bool) { n.add(err.Error()) }

func (n *recordingWatcher) Rejected(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rejected = append(n.rejected, err.Error())
}

func (n *recordingWatcher) Lost(o *Outage) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.outages = append(n.outages, o)
}

func (n *recordingWatcher) take() []string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	updates := n.updates
	n.updates = nil
	return updates
}

// watch subscribes to the endpoints of a cluster, and returns a function that unsubscribes. Tests
// must call it before the synctest bubble ends.
func (m *manager) watch(cluster string) (*recordingWatcher, func()) {
	n := new(recordingWatcher)
	return n, Watch(m.serverConfig(), Endpoints, cluster, n, nil)
}

type recordingFollower struct{ *recordingWatcher }

func (f recordingFollower) Changed(s Snapshot) {
	for _, states := range []map[string]State{s.Clusters, s.Endpoints} {
		for _, name := range slices.Sorted(maps.Keys(states)) {
			switch r := states[name]; {
			case r.Good != nil:
				f.Resource(r.Good, r.Version)
			case r.Err != nil:
				f.add(r.Err.Error())
			default:
				f.add(name + "?")
			}
		}
	}
}

func (f recordingFollower) Unknown(err error) { f.add(err.Error()) }

func needs(cluster string) func(map[string]State) Needs {
	return func(map[string]State) Needs { return Needs{Endpoints: []string{cluster}} }
}

func follow(reachabilityOnly bool, managers ...*manager) (*recordingWatcher, func()) {
	target := Target{Cluster: "a", ReachabilityOnly: reachabilityOnly, Needs: needs("a")}
	for _, m := range managers {
		target.Servers = append(target.Servers, m.serverConfig())
	}
	n := new(recordingWatcher)
	return n, Follow(target, recordingFollower{n}, nil).Stop
}

func sleep(d time.Duration) { <-time.After(d) }
