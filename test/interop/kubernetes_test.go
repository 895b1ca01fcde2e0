package interop

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	_ "github.com/understudy-lb/understudy/discovery/eds"
	"github.com/understudy-lb/understudy/internal/testing/kubetest"
)

// Two replicas of "understudy serve" behind one address follow a Service, for clients outside
// Kubernetes. The backends are replaced one by one, and a replica is killed. No call may fail. When
// clients connect to the other replica, they must not open new connections to backends.
func TestReplicasOfServeFollowService(t *testing.T) {
	t.Parallel()
	api := kubetest.Start(t)
	var pods []*podServer
	for i := range 3 {
		pods = append(pods, newPodServer(t, api, i))
	}
	replicas := []*process{replica(t, api), replica(t, api)}
	front := newServiceProxy(t, replicas[0].address, replicas[1].address)
	stock, ours := stockChannel(t, front.address, "web"), dial(t, "eds://"+front.address+"/web")
	other := newStockClient(t, front.address, "xds:///web")
	conns := []*grpc.ClientConn{stock, ours}
	for _, c := range conns {
		for _, p := range pods {
			callUntil(t, c, p.address)
		}
	}
	stopStock, stopOurs, stopOther := traffic(t, stock, 2), traffic(t, ours, 2), other.traffic(t)

	roll := func(i int) {
		next := newPodServer(t, api, len(pods)+i)
		for _, c := range conns {
			callUntil(t, c, next.address)
		}
		pods[i].drain()
		pods[i] = next
	}
	roll(0)
	before := int64(9)
	for end := time.Now().Add(timeout); opened(pods) < before && time.Now().Before(end); {
		callN(t, stock, 10)
	}
	used := front.removeReplica(0, replicas[0].kill)
	if used == 0 {
		t.Error("no client used the killed replica")
	}
	front.awaitConnections(t, used)
	for _, c := range conns {
		callN(t, c, 200)
	}
	if after := opened(pods); after != before {
		t.Errorf("%d connections to the backends were opened after a replica was killed", after-before)
	}
	roll(1)
	roll(2)
	t.Logf("none lost of %d calls of xds:, %d of eds: and %d of a stock client", stopStock(), stopOurs(), stopOther())
}

func replica(t *testing.T, api *kubetest.Server) *process {
	t.Helper()
	return serve(t, "127.0.0.1:0", "--from=web=kubernetes:///web.shop:grpc", "--kubeconfig", api.Kubeconfig(t))
}

// podServer is a backend with its own EndpointSlice. The endpoints of a slice have the same port,
// but the backends have different ports.
type podServer struct {
	*grpc.Server
	api     *kubetest.Server
	address string
	slice   string
	opened  atomic.Int64
}

func newPodServer(t *testing.T, api *kubetest.Server, n int) *podServer {
	p := &podServer{api: api, slice: fmt.Sprint("web-", n)}
	p.Server, p.address = backendServer(t, &p.opened)
	p.set(`{}`)
	return p
}

func (p *podServer) set(conditions string) {
	host, port, _ := net.SplitHostPort(p.address)
	n, _ := strconv.Atoi(port)
	p.api.Set("web", p.slice, n, fmt.Sprintf(`{"addresses":[%q],"conditions":%s}`, host, conditions))
}

// drain stops a backend like a kubelet: it marks the backend as terminating, and waits for calls in
// flight.
func (p *podServer) drain() {
	p.set(`{"ready":false,"serving":true,"terminating":true}`)
	p.GracefulStop()
	p.api.Delete(p.slice)
}

func opened(pods []*podServer) (n int64) {
	for _, p := range pods {
		n += p.opened.Load()
	}
	return n
}

// serviceProxy forwards connections to the replicas in turn, like a Service.
type serviceProxy struct {
	address string

	mu        sync.Mutex
	changed   *sync.Cond
	replicas  []string
	next      int
	forwarded int
	conns     map[string]net.Conn // connections to replicas, by client address
}

func newServiceProxy(t *testing.T, replicas ...string) *serviceProxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	f := &serviceProxy{address: l.Addr().String(), replicas: replicas, conns: make(map[string]net.Conn)}
	f.changed = sync.NewCond(&f.mu)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(client)
		}
	}()
	return f
}

func (f *serviceProxy) serve(client net.Conn) {
	defer client.Close()
	f.mu.Lock()
	to := f.replicas[f.next%len(f.replicas)]
	f.next++
	f.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	f.mu.Lock()
	f.forwarded++
	f.conns[client.RemoteAddr().String()] = server
	f.changed.Broadcast()
	f.mu.Unlock()
	go func() {
		defer client.Close()
		defer server.Close()
		_, _ = io.Copy(server, client)
	}()
	_, _ = io.Copy(client, server)
	f.mu.Lock()
	delete(f.conns, client.RemoteAddr().String())
	f.mu.Unlock()
}

// removeReplica removes a replica and kills it. awaited is the value that f.forwarded reaches when
// the replica's clients have reconnected, or 0 if the replica had no connections.
func (f *serviceProxy) removeReplica(n int, kill func()) (awaited int) {
	f.mu.Lock()
	removed, used := f.replicas[n], 0
	f.replicas = slices.Delete(slices.Clone(f.replicas), n, n+1)
	for _, c := range f.conns {
		if c.RemoteAddr().String() == removed {
			used++
		}
	}
	awaited = f.forwarded + used
	f.mu.Unlock()
	kill()
	if used == 0 {
		return 0
	}
	return awaited
}

// awaitConnections waits until the proxy has forwarded count connections since its start.
func (f *serviceProxy) awaitConnections(t *testing.T, count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := time.Now().Add(timeout)
	defer time.AfterFunc(timeout, f.changed.Broadcast).Stop()
	for f.forwarded < count {
		if f.changed.Wait(); !time.Now().Before(end) {
			t.Fatalf("the clients of the killed replica have not reconnected within %v", timeout)
		}
	}
}
