package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/scripttest"
)

// fakeSource is a source that the test controls. It also simulates a network in which only the
// hosts in reachable accept connections.
type fakeSource struct {
	scripttest.Source
	server     *bufconn.Listener
	sickServer *bufconn.Listener
	mu         sync.Mutex
	reachable  map[string]bool
	query      string
	failCalls  bool
	sick       func() error // how calls to the host named sick end
}

func (s *fakeSource) restore(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reachable[host] = true
}

func (s *fakeSource) dial(ctx context.Context, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	s.mu.Lock()
	up := s.reachable[host]
	s.mu.Unlock()
	switch {
	case host == "sick":
		return s.sickServer.DialContext(ctx)
	case up:
		return s.server.DialContext(ctx)
	case host == "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, errors.New("dial tcp " + address + ": connect: connection refused")
}

func openChannel(t *testing.T, s *fakeSource, endpoints ...flat.Endpoint) *grpc.ClientConn {
	t.Helper()
	s.server = scripttest.Serve(t, health.NewServer(), grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if s.failCalls {
			return nil, status.Error(codes.Unavailable, "sick")
		}
		return handle(ctx, req)
	}))
	s.sickServer = scripttest.Serve(t, health.NewServer(), grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if err := s.sick(); err != nil {
			return nil, err
		}
		return handle(ctx, req)
	}))
	cc := scripttest.Open(t, t.Name()+s.query, []discovery.Mechanism{{Source: s}}, nil, grpc.WithContextDialer(s.dial), grpc.WithIdleTimeout(time.Minute))
	if len(endpoints) > 0 {
		s.Receiver.Update(flat.Answer(endpoints...))
	}
	settle()
	return cc
}

func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func newEndpoint(priority uint32, locality, host string, weight uint32) flat.Endpoint {
	return flat.Endpoint{Priority: priority, Locality: locality, Address: host + ":443", Weight: weight}
}

func get(t *testing.T, query string) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/understudy/"+query, nil))
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	return w.Body.String()
}

// channel returns the channel of this test.
func channel(t *testing.T) (*Channel, string) {
	t.Helper()
	return channelTo(t, t.Name())
}

func channelTo(t *testing.T, name string) (*Channel, string) {
	t.Helper()
	var page Page
	if err := json.Unmarshal([]byte(get(t, "?format=json")), &page); err != nil {
		t.Fatal(err)
	}
	var found []*Channel
	for _, c := range page.Channels {
		if strings.HasPrefix(c.Target, "story:///"+name) {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d channels for %s on the page, want 1", len(found), name)
	}
	return found[0], get(t, fmt.Sprintf("?channel=%d", found[0].ID))
}

func wantTexts(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not contain %q:\n%s", text, page)
		}
	}
}

func TestPageShowsPriorityInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"b": true, "c": true}}
		openChannel(t, s, newEndpoint(0, "us-east/a", "a", 1), newEndpoint(1, "eu-west", "b", 3), newEndpoint(1, "eu-west", "c", 1))
		c, page := channel(t)
		if c.InUse != "p1 eu-west" || c.State != "READY" || len(c.Why) != 1 || c.Why[0] != "p0 us-east/a: connection refused by a:443" {
			t.Errorf("in use is %q, state %s, reasons %q", c.InUse, c.State, c.Why)
		}
		p1 := c.Tree.Children[1]
		if !p1.InUse || c.Tree.Children[0].InUse || p1.Below.Policy != "weighted_target" {
			t.Errorf("p1 is %+v", p1)
		}
		endpoints := p1.Below.Children[0].Below.Children
		if endpoints[0].Name != "b:443" || endpoints[0].Share != 0.75 || endpoints[1].Share != 0.25 || endpoints[0].Since == nil {
			t.Errorf("the endpoints are %+v and %+v", endpoints[0], endpoints[1])
		}
		if c.Sources[0].State != "answered" || c.Sources[0].Endpoints != 3 || c.Sources[0].Priorities != 2 {
			t.Errorf("the source is %+v", c.Sources[0])
		}
		wantTexts(t, page, "Calls go to p1 eu-west.", "Not p0 us-east/a: connection refused by a:443", "75 %", "failover from p0 us-east/a to p1 eu-west", "TRANSIENT FAILURE")
	})
}

func TestPageShowsWhatPriorityWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"b": true}}
		openChannel(t, s, newEndpoint(0, "us-east/a", "hang", 1), newEndpoint(1, "eu-west", "b", 1))
		_, page := channel(t)
		wantTexts(t, page, "p1 eu-west", "not needed yet, so not connected")
		wantTexts(t, page, "Calls wait for p0 us-east/a.", "connecting, the next priority takes over in 9 s")
		time.Sleep(10 * time.Second)
		settle()
		_, page = channel(t)
		wantTexts(t, page, "Calls go to p1 eu-west.", "did not connect within 10 s")
		s.restore("a")
		s.Receiver.Update(flat.Answer(newEndpoint(0, "us-east/a", "a", 1), newEndpoint(1, "eu-west", "b", 1)))
		settle()
		_, page = channel(t)
		wantTexts(t, page, "Calls go to p0 us-east/a.", "not needed now, kept for 14m59s")
	})
}

func TestPageShowsStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true, "b": true}, query: "?warmStandby=1"}
		openChannel(t, s, newEndpoint(0, "us-east/a", "a", 1), newEndpoint(1, "eu-west", "b", 1), newEndpoint(2, "eu-south", "c", 1))
		_, page := channel(t)
		wantTexts(t, page, "Calls go to p0 us-east/a.", "READY, on standby", "not needed yet, so not connected")
	})
}

func TestChannelWithoutEndpointsIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{}
		openChannel(t, s)
		c, page := channel(t)
		if c.State != "CONNECTING" || c.Sources[0].State != "no answer yet" {
			t.Errorf("the channel is %+v", c)
		}
		wantTexts(t, page, "Calls wait.")
		s.Receiver.Fail(errors.New("xds.example.com: connection refused"))
		synctest.Wait()
		time.Sleep(time.Second)
		c, page = channel(t)
		if c.State != "TRANSIENT_FAILURE" || c.Sources[0].Error != "xds.example.com: connection refused" {
			t.Errorf("the channel is %+v", c)
		}
		wantTexts(t, page, "Calls fail.", "xds.example.com: connection refused")
	})
}

// An idle channel must be shown once, with its last policies. A closed channel must not be shown.
func TestIdleChannelIsShownWithLastTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true}}
		endpoint := newEndpoint(0, "us-east/a", "a", 1)
		cc := openChannel(t, s, endpoint)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		c, page := channel(t)
		if !c.Idle || c.State != "IDLE" || c.Tree.Children[0].Title != "p0 us-east/a" || c.Tree.Children[0].Below == nil {
			t.Errorf("the idle channel is %+v", c)
		}
		if c.Tree.BusySince != nil {
			t.Errorf("the idle channel is shown as busy since %v", c.Tree.BusySince)
		}
		wantTexts(t, page, "Idle: there are no calls", "a:443")
		cc.Connect()
		synctest.Wait()
		s.Receiver.Update(flat.Answer(endpoint))
		settle()
		if c, _ := channel(t); c.Idle {
			t.Errorf("after idle mode the channel is %+v", c)
		}
		cc.Close()
		synctest.Wait()
		if got := get(t, ""); strings.Contains(got, t.Name()) {
			t.Errorf("the closed channel is shown:\n%s", got)
		}
	})
}

func mustParse(target string) *url.URL {
	u, err := url.Parse(target)
	if err != nil {
		panic(err)
	}
	return u
}
