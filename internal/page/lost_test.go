package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/eds"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// testNetwork is an in-memory network with several management servers and one backend.
type testNetwork struct {
	t         *testing.T
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	stops     map[string]func()
}

const (
	manager    = "10.0.0.1:18000"
	backend    = "10.1.0.1:443"
	managerURI = "dns:///" + manager
)

func newTestNetwork(t *testing.T) *testNetwork {
	p := &testNetwork{t: t, listeners: make(map[string]*bufconn.Listener), stops: make(map[string]func())}
	l := p.listen(backend)
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return p
}

func (p *testNetwork) listen(address string) net.Listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners[address] = bufconn.Listen(1 << 16)
	return p.listeners[address]
}

func (p *testNetwork) serve(address string, resources ...proto.Message) {
	server := adstest.Serve(p.listen(address), adstest.NewCatalogue(resources...).Serve)
	p.stops[address] = server.Stop
	p.t.Cleanup(server.Stop)
}

func (p *testNetwork) stop(address string) {
	p.mu.Lock()
	delete(p.listeners, address)
	p.mu.Unlock()
	p.stops[address]()
}

func (p *testNetwork) dial(ctx context.Context, address string) (net.Conn, error) {
	p.mu.Lock()
	l := p.listeners[address]
	p.mu.Unlock()
	if l == nil {
		return nil, errors.New("dial tcp " + address + ": connect: connection refused")
	}
	return l.DialContext(ctx)
}

func (p *testNetwork) channel(target string, idle time.Duration) *grpc.ClientConn {
	p.t.Helper()
	override := &adsclient.Network{Dial: p.dial}
	builder := given.Builder(eds.Scheme, given.Sources(eds.WithInsecure()), given.Sources(discovery.OwnOption(func(o *adsclient.Options) { o.Network = override })))
	cc, err := grpc.NewClient(target, grpc.WithResolvers(builder), grpc.WithContextDialer(p.dial), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(idle))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { cc.Close() })
	cc.Connect()
	settle()
	return cc
}

func channelTo(t *testing.T, target string) (*Channel, string) {
	t.Helper()
	var page Page
	if err := json.Unmarshal([]byte(get(t, "?format=json")), &page); err != nil {
		t.Fatal(err)
	}
	for _, c := range page.Channels {
		if c.Target == target {
			return c, get(t, fmt.Sprintf("?channel=%d", c.ID))
		}
	}
	t.Fatalf("no channel to %s is shown", target)
	panic("unreachable")
}

func expectAge(t *testing.T, what string, at *time.Time, from, to time.Duration) {
	t.Helper()
	if at == nil || time.Since(*at) < from || time.Since(*at) > to {
		t.Errorf("%s is %v, want %v to %v ago", what, at, from, to)
	}
}

// The management server becomes unreachable, and its endpoints stay in use. The page must show the
// error, the start of the outage, and the age of the endpoints.
func TestPageShowsLostControlPlane(t *testing.T) {
	for _, target := range []string{"eds://" + manager + "/shop", "eds://" + manager + "/shop?cds=true"} {
		synctest.Test(t, func(t *testing.T) {
			p := newTestNetwork(t)
			resources := []proto.Message{adstest.EDS("shop"), adstest.Cluster("shop", backend)}
			p.serve(manager, resources...)
			p.channel(target, 0)
			time.Sleep(time.Hour)
			c, page := channelTo(t, target)
			if s := c.Sources[0]; len(c.Sources) != 1 || s.Error != "" || s.Confirmed != nil || s.ErrorSince != nil || strings.Contains(page, "stay in use") {
				t.Errorf("%s: before the failure the source is %+v", target, s)
			}
			p.stop(manager)
			time.Sleep(10 * time.Minute)
			c, page = channelTo(t, target)
			s := c.Sources[0]
			if want := "management server " + managerURI + " cannot be reached: connection refused by " + manager; s.State != "answered" || s.Error != want || s.LastError != want {
				t.Errorf("%s: the source is %+v, want the error\n%s", target, s, want)
			}
			expectAge(t, "failing since", s.ErrorSince, 598*time.Second, 600*time.Second)
			expectAge(t, "confirmed", s.Confirmed, 600*time.Second, 600*time.Second)
			version := ""
			if !strings.Contains(target, "cds") {
				version = " of version " + s.Version
				if s.Version == "" {
					t.Errorf("%s: the source has no version", target)
				}
			}
			if c.State != "READY" || c.InUse == "" {
				t.Errorf("%s: the channel is %+v", target, c)
			}
			wantTexts(t, page, "; the endpoints"+version+", confirmed 10m0s ago, stay in use: "+s.Error, "; the previous endpoints stay in use</li>")
			p.serve(manager, resources...)
			time.Sleep(3 * time.Minute)
			c, page = channelTo(t, target)
			if s := c.Sources[0]; s.Error != "" || s.Confirmed != nil || s.ErrorSince != nil || strings.Contains(page, "ago, stay in use") {
				t.Errorf("%s: after the server has returned the source is %+v", target, s)
			}
			wantTexts(t, page, "recovered after 1")
		})
	}
}

// A source fails after it has sent an answer or a list of discovery mechanisms. The page must show
// the failure, and that the answer or list stays in use.
func TestPageShowsWhatStaysInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true}}
		openChannel(t, s)
		answer := flat.Answer(newEndpoint(0, "us-east/a", "a", 1))
		answer.Version = "7"
		s.Receiver.Update(answer)
		time.Sleep(10 * time.Second)
		s.Receiver.Fail(errors.New("shop.yaml: no such file or directory"))
		time.Sleep(12 * time.Second)
		s.Receiver.Fail(errors.New("shop.yaml:3:1: want a list"))
		time.Sleep(12 * time.Second)
		c, page := channel(t)
		expectAge(t, "failing since", c.Sources[0].ErrorSince, 24*time.Second, 24*time.Second)
		expectAge(t, "confirmed", c.Sources[0].Confirmed, 24*time.Second, 24*time.Second)
		wantTexts(t, page, "Source story has been failing for 24 s; the endpoints of version 7, confirmed 24 s ago, stay in use: shop.yaml:3:1: want a list")
		mechanism := &fakeSource{}
		s.Receiver.Mechanisms([]discovery.Mechanism{{Name: "dns", Source: mechanism}})
		mechanism.Receiver.Update(flat.Answer(newEndpoint(0, "us-east/a", "a", 1)))
		settle()
		if c, _ := channel(t); len(c.Sources) != 1 || c.Sources[0].Name != "dns" || c.Sources[0].Error != "" {
			t.Errorf("the sources are %+v, want dns without an error", c.Sources)
		}
		s.Receiver.Fail(errors.New("shop.yaml: permission denied"))
		time.Sleep(5 * time.Second)
		c, page = channel(t)
		if len(c.Sources) != 2 || c.Sources[0].Name != "story" || c.Sources[0].Error != "shop.yaml: permission denied" || c.Sources[1].Error != "" || c.State != "READY" {
			t.Errorf("the channel is %s, the sources are %+v", c.State, c.Sources)
		}
		wantTexts(t, page, "Source story has been failing for 5 s; the endpoints, confirmed 5 s ago, stay in use: shop.yaml: permission denied")
		s.Receiver.Mechanisms([]discovery.Mechanism{{Name: "dns", Source: failingSource{}}})
		time.Sleep(7 * time.Second)
		_, page = channel(t)
		wantTexts(t, page, "Source dns has been failing for 7 s; the endpoints, confirmed 7 s ago, stay in use: bad cluster")
	})
}

type failingSource struct{}

func (failingSource) Check(bool) error { return nil }

func (failingSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Fail(errors.New("bad cluster"))
	return discovery.Started{}, nil
}
