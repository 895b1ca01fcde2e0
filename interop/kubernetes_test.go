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

// Two replicas of serve behind one address follow a Service, for clients outside of Kubernetes. The
// backends are replaced one by one, and a replica is killed. No call fails. Clients that move to
// the other replica open no new connections to backends.
func TestAFleetFollowsAService(t *testing.T) {
	api := kubetest.Start(t)
	var pods []*podServer
	for i := range 3 {
		pods = append(pods, newPodServer(t, api, i))
	}
	replicas := []*process{replica(t, api), replica(t, api)}
	front := newFront(t, replicas[0].address, replicas[1].address)
	stock, ours := stockChannel(t, front.address, "web"), dial(t, "eds://"+front.address+"/web")
	other := newStockClient(t, front.address, "xds:///web")
	conns := []*grpc.ClientConn{stock, ours}
	for _, c := range conns {
		for _, p := range pods {
			until(t, c, p.address)
		}
	}
	stopStock, stopOurs, stopOther := traffic(t, stock, 2), traffic(t, ours, 2), other.traffic(t)

	roll := func(i int) {
		next := newPodServer(t, api, len(pods)+i)
		for _, c := range conns {
			until(t, c, next.address)
		}
		pods[i].drain()
		pods[i] = next
	}
	roll(0)
	before := int64(9)
	for end := time.Now().Add(patience); opened(pods) < before && time.Now().Before(end); {
		answered(t, stock, 10)
	}
	used := front.dies(0, replicas[0].kill)
	if used == 0 {
		t.Error("no client used the killed replica")
	}
	front.moved(t, used)
	for _, c := range conns {
		answered(t, c, 200)
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

// podServer is a backend with its own EndpointSlice. The endpoints of a slice share a port, but the
// backends have different ports.
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

// drain ends a backend like a kubelet: the backend is marked as terminating, and completes the
// calls in flight.
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

// front forwards connections to the replicas in turn, as a Service does.
type front struct {
	address string

	mu      sync.Mutex
	changed *sync.Cond
	to      []string
	next    int
	begun   int
	conns   map[string]net.Conn // connections to replicas, by client address
}

func newFront(t *testing.T, replicas ...string) *front {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	try(t, err)
	f := &front{address: l.Addr().String(), to: replicas, conns: make(map[string]net.Conn)}
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

func (f *front) serve(client net.Conn) {
	defer client.Close()
	f.mu.Lock()
	to := f.to[f.next%len(f.to)]
	f.next++
	f.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	f.mu.Lock()
	f.begun++
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

// dies removes a replica from the front and kills it. begun is the value that f.begun reaches when
// the replica's clients have reconnected, or 0 if the replica had no connections.
func (f *front) dies(n int, kill func()) (begun int) {
	f.mu.Lock()
	gone, used := f.to[n], 0
	f.to = slices.Delete(slices.Clone(f.to), n, n+1)
	for _, c := range f.conns {
		if c.RemoteAddr().String() == gone {
			used++
		}
	}
	begun = f.begun + used
	f.mu.Unlock()
	kill()
	if used == 0 {
		return 0
	}
	return begun
}

// moved waits until begun connections have been forwarded since the start.
func (f *front) moved(t *testing.T, begun int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := time.Now().Add(patience)
	defer time.AfterFunc(patience, f.changed.Broadcast).Stop()
	for f.begun < begun {
		if f.changed.Wait(); !time.Now().Before(end) {
			t.Fatalf("the clients of the killed replica have not reconnected within %v", patience)
		}
	}
}
