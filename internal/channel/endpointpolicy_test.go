package channel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/leastrequest"
	_ "google.golang.org/grpc/balancer/ringhash"
	_ "google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/page"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// endpointPolicies are policies of grpc-go that may take the place of weighted_round_robin.
var endpointPolicies = []string{
	`least_request_experimental{"choiceCount": 3}`,
	`ring_hash_experimental{"requestHashHeader": "user"}`,
	`weighted_round_robin{}`,
	`pick_first`,
}

// story is one channel with an endpoint policy, its metrics and its page.
type story struct {
	t *testing.T
	*queues
	channels []*grpc.ClientConn
	metrics  lbtest.Recorder
}

// metricsHandler passes the metrics of a channel on.
type metricsHandler struct {
	ignore
	*lbtest.Recorder
}

type ignore struct{}

func (ignore) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (ignore) HandleRPC(context.Context, stats.RPCStats)                         {}
func (ignore) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (ignore) HandleConn(context.Context, stats.ConnStats)                       {}

func newStory(t *testing.T, policy string, workers int) *story {
	live.Enable()
	t.Cleanup(live.Disable)
	s := &story{t: t, queues: newQueues(t, workers, "a0", "a1", "b0", "b1")}
	o := understudy.Recommended()
	if o.EndpointPolicy = policy; policy == "pick_first" {
		o.OutlierDetection = understudy.Off
	}
	cc := s.newChannel("failover:///tier:///a2,tier:///b2", o, grpc.WithStatsHandler(metricsHandler{Recorder: &s.metrics}))
	s.channels = []*grpc.ClientConn{cc}
	s.page("a") // from now on, page and metrics count calls
	s.picks("a")
	synctest.Wait()
	return s
}

// picks returns the calls that the metrics show for a priority.
func (s *story) picks(priority string) (n int64) {
	for key, value := range s.metrics.Export() {
		if fields := strings.Fields(key); fields[0] == "understudy.picks" && strings.Contains(fields[3], "tier:///"+priority) {
			n += value
		}
	}
	return n
}

// page returns the page's channel, and the calls that it shows for the endpoints of a priority.
func (s *story) page(priority string) (channel page.Channel, endpoints int, calls int64) {
	s.t.Helper()
	time.Sleep(time.Second)
	answer := httptest.NewRecorder()
	page.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/?format=json", nil))
	var all page.Page
	if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil || len(all.Channels) != 1 {
		s.t.Fatalf("the page has %d channels, want one; %v", len(all.Channels), err)
	}
	var walk func(p *page.Policy, below bool)
	walk = func(p *page.Policy, below bool) {
		for _, c := range p.Children {
			switch below := below || strings.Contains(c.Name+c.Title, "tier:///"+priority); {
			case c.Below != nil:
				walk(c.Below, below)
			case below && c.Calls != nil:
				endpoints++
				calls += int64(c.Calls.Started)
			}
		}
	}
	walk(all.Channels[0].Tree, false)
	return *all.Channels[0], endpoints, calls
}

// wantInUse checks that page and metrics know where the calls go. since has the traffic until now,
// in which no call has failed.
func (s *story) wantInUse(priority string, since traffic) {
	s.t.Helper()
	channel, endpoints, calls := s.page(priority)
	if !strings.Contains(channel.InUse, "tier:///"+priority) || channel.Cause != "" || endpoints != 2 {
		s.t.Errorf("the page has %d endpoints, and says: %s", endpoints, channel.Headline())
	}
	if want := int64(since.byPriority[priority[0]]); calls != want || s.picks(priority) != want {
		s.t.Errorf("the page has %d calls, and the metrics %d, want %d", calls, s.picks(priority), want)
	}
}

// Whatever picks the endpoints, the next priority takes the calls while the first has a fault, and
// the first gets them back.
func TestEndpointPolicies(t *testing.T) {
	for name, test := range map[string]struct {
		fault codes.Code // OK: the priority is killed; DEADLINE_EXCEEDED: it hangs
		lost  int
		one   bool // it is only one of two endpoints
	}{
		"is killed":      {codes.OK, 5, false},
		"hangs":          {codes.DeadlineExceeded, 75, false},
		"is UNAVAILABLE": {codes.Unavailable, 25, false},
		"is broken":      {codes.Internal, 25, false},
		"half hangs":     {codes.DeadlineExceeded, 75, true},
	} {
		for _, policy := range endpointPolicies {
			t.Run(fmt.Sprintf("%s, %s", policy, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStory(t, policy, 20)
					s.fault = func(ctx context.Context, address string, since time.Duration) error {
						if address[0] != 'a' || test.one && address == "a0" || since < 6*time.Second || since > 17*time.Second {
							return nil
						}
						if test.fault == codes.DeadlineExceeded {
							<-ctx.Done()
						}
						return status.Error(test.fault, "broken")
					}
					before := s.send(s.channels, 50, 4*time.Second)
					s.wantInUse("a", before)
					if before.lost > 0 || before.byPriority['b'] > 0 {
						t.Errorf("before the fault, %d calls are lost and %d elsewhere", before.lost, before.byPriority['b'])
					}
					if test.fault == codes.OK {
						s.setDown(true, "a0", "a1")
					}
					during := s.send(s.channels, 100, 10*time.Second)
					inUse := "tier:///b"
					if test.one {
						inUse = "tier:///a"
					}
					if channel, endpoints, calls := s.page("b"); !strings.Contains(channel.InUse, inUse) || endpoints != 2 || calls != s.picks("b") || calls < int64(during.byPriority['b']) {
						t.Errorf("%d calls elsewhere, but the page has %d, the metrics %d, and it says: %s", during.byPriority['b'], calls, s.picks("b"), channel.Headline())
					}
					if test.fault == codes.OK {
						s.setDown(false, "a0", "a1")
					}
					s.send(s.channels, 5, 90*time.Second)
					after := s.send(s.channels, 50, 5*time.Second)
					t.Logf("before %+v, during %+v, after %+v", before, during, after)
					if during.lost > test.lost {
						t.Errorf("%d calls are lost, want at most %d", during.lost, test.lost)
					}
					if after.lost > 0 || after.byPriority['b'] > after.calls/20 {
						t.Errorf("long after the fault, %d calls are lost and %d of %d elsewhere", after.lost, after.byPriority['b'], after.calls)
					}
					if channel, _, calls := s.page("a"); !strings.Contains(channel.InUse, "tier:///a") || calls != s.picks("a") {
						t.Errorf("the page has %d calls, the metrics %d, and it says: %s", calls, s.picks("a"), channel.Headline())
					}
				})
			})
		}
	}
}

// Whatever picks the endpoints, the next priority takes what the first cannot carry, and no more
// once there is less.
func TestEndpointPoliciesWhenFull(t *testing.T) {
	for _, policy := range endpointPolicies {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				workers := 2
				if policy == "pick_first" {
					workers = 4 // one endpoint is used
				}
				s := newStory(t, policy, workers)
				s.send(s.channels, 120, 10*time.Second)
				full := s.send(s.channels, 120, 20*time.Second)
				channel, _, calls := s.page("b")
				if channel.Load() != "full" && channel.Cause != "recovering" || calls != s.picks("b") {
					t.Errorf("the page has %d calls, the metrics %d, and it says: %s", calls, s.picks("b"), channel.Headline())
				}
				s.send(s.channels, 20, 60*time.Second)
				after := s.send(s.channels, 20, 5*time.Second)
				t.Logf("full %+v, after %+v", full, after)
				if full.lost > full.calls/10 || full.byPriority['a'] < full.calls/2 || full.byPriority['b'] < full.calls/5 {
					t.Errorf("of %d calls, %d are lost, and the priorities get %v", full.calls, full.lost, full.byPriority)
				}
				if after.lost > 0 || after.byPriority['b'] > after.calls/50 {
					t.Errorf("afterwards, %d of %d calls are lost, and the priorities get %v", after.lost, after.calls, after.byPriority)
				}
			})
		})
	}
}

// userKey is the key by which ring_hash chooses an endpoint.
func userKey(i int) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "user", fmt.Sprint("user", i))
}

// A key stays on its endpoint, within its priority. It returns there after a failover, and if an
// endpoint goes, only the keys of this one move.
func TestKeysStayOnTheirEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 200
		m := newMemory(t, understudy.Recommended().ServerKeepalive())
		o := understudy.Recommended()
		o.EndpointPolicy = `ring_hash_experimental{"requestHashHeader": "user"}`
		cc := m.newChannel("failover:///tier:///a5,tier:///b5", o)
		where := func() (all [keys]string) {
			t.Helper()
			for i := range all {
				address, err := m.callWith(userKey(i), cc)
				if err != nil {
					t.Fatal(err)
				}
				all[i] = address
				time.Sleep(10 * time.Millisecond)
			}
			return all
		}
		moved := func(from, to [keys]string) (n int) {
			for i := range from {
				if from[i] != to[i] {
					n++
				}
			}
			return n
		}
		where() // connects the endpoints, one after another
		first := where()
		if n := moved(first, where()); n > keys/100 {
			t.Errorf("%d of %d keys move while nothing changes", n, keys)
		}
		m.setDown(true, "a3")
		time.Sleep(5 * time.Second)
		where()
		if n := moved(first, where()); n > keys/5+keys/20 {
			t.Errorf("%d of %d keys move, want those of one endpoint of five", n, keys)
		}
		m.setDown(false, "a3")
		m.setDown(true, "a0", "a1", "a2", "a4")
		m.setDown(true, "a3")
		time.Sleep(5 * time.Second)
		for i, address := range where() {
			if address[0] != 'b' {
				t.Fatalf("key %d is on %s, want the next priority", i, address)
			}
		}
		m.setDown(false, "a0", "a1", "a2", "a3", "a4")
		for range 30 {
			where()
		}
		if n := moved(first, where()); n > keys/50 {
			t.Errorf("%d of %d keys are elsewhere after the return", n, keys)
		}
	})
}
