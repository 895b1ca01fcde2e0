package channel_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

var recommended = topology.Settings{
	Overflow: true, FailoverTimeout: 2 * time.Second, WarmStandby: 1, OutlierDetection: options.On,
}

// crowd is a set of clients with the same two priorities. Each client makes one call a second.
type crowd struct {
	t              *testing.T
	clients        []*fleet
	calls          map[string]int
	dueConnections map[int][]*lbtest.SubConn // subchannels, by the number of steps until they become READY
}

var firstTier = []string{"a0", "a1"}

const (
	crowdSize = 1000
	crowdStep = 10 * time.Millisecond
)

func newCrowd(t *testing.T) *crowd {
	c := &crowd{t: t, dueConnections: map[int][]*lbtest.SubConn{}}
	for range crowdSize {
		h := newFleet(t, recommended, 2, 2)
		h.settle()
		c.clients = append(c.clients, h)
	}
	return c
}

func (c *crowd) runSecond() (calls map[string]int) {
	c.calls = map[string]int{}
	steps := int(time.Second / crowdStep)
	for step := range steps {
		c.connectDue()
		for i := step; i < len(c.clients); i += steps {
			c.call(i)
		}
		time.Sleep(crowdStep)
		synctest.Wait()
	}
	return c.calls
}

func (c *crowd) call(i int) {
	result, err := c.clients[i].cc.State().Picker.Pick(balancer.PickInfo{})
	if err != nil {
		c.t.Fatalf("a call of client %d failed or waited: %v", i, err)
	}
	endpoint := result.SubConn.(*lbtest.SubConn).Addresses[0].Addr
	if result.Done != nil {
		result.Done(balancer.DoneInfo{BytesSent: true, BytesReceived: true})
	}
	c.calls[endpoint]++
}

func (c *crowd) disconnect() {
	for _, state := range []connectivity.State{connectivity.Idle, connectivity.Connecting} {
		for _, h := range c.clients {
			for _, a := range firstTier {
				h.cc.SubConn(a).Report(state, nil)
			}
		}
		synctest.Wait()
	}
}

func (c *crowd) scheduleReconnects(within time.Duration) {
	for _, h := range c.clients {
		for _, a := range firstTier {
			step := rand.N(within/crowdStep + 1)
			c.dueConnections[int(step)] = append(c.dueConnections[int(step)], h.cc.SubConn(a))
		}
	}
}

func (c *crowd) connectDue() {
	due := c.dueConnections[0]
	later := map[int][]*lbtest.SubConn{}
	for step, conns := range c.dueConnections {
		if step > 0 {
			later[step-1] = conns
		}
	}
	c.dueConnections = later
	if len(due) == 0 {
		return
	}
	for _, sc := range due {
		sc.Report(connectivity.Ready, nil)
	}
	synctest.Wait()
	for _, sc := range due {
		sc.ReportHealth(connectivity.Ready, nil)
	}
	synctest.Wait()
}

// A thousand clients lose a priority, which later reconnects at once or at random times. In each
// second, no backend gets more than 1.2 times its share of the calls. The clients call in step, so
// that all send their first probe in the same second, after ten calls; from then on, at most a tenth
// of the calls move in a second. After two minutes and a half, nearly all calls have returned.
func TestReturnOfThousandClients(t *testing.T) {
	for name, within := range map[string]time.Duration{"at the same moment": 0, "as their backoffs end": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t)
				defer func() {
					for _, h := range c.clients {
						h.policy.Close()
					}
				}()
				for range 3 {
					c.runSecond()
				}
				c.disconnect()
				for range 20 {
					c.runSecond()
				}
				c.scheduleReconnects(within)
				const length, mean = 170, 10 // seconds; the share of each client decides by chance
				most, mostMoved, back, atLast := 0, 0, 0, 0
				for second := range length {
					calls := c.runSecond()
					for _, n := range calls {
						most = max(most, n)
					}
					first := calls["a0"] + calls["a1"]
					if second >= 15 {
						mostMoved = max(mostMoved, first-back, back-first)
					}
					if back = first; second >= length-mean {
						atLast += first
					}
				}
				back = atLast / mean
				t.Logf("no backend got more than %.2f of its share in a second, at most %d calls moved in one second, and %d of %d have returned", float64(most)/(crowdSize/2), mostMoved, back, crowdSize)
				if float64(most) > 1.2*crowdSize/2 {
					t.Errorf("a backend got %d calls in a second, want at most 1.2 times %d", most, crowdSize/2)
				}
				if mostMoved > crowdSize/10 {
					t.Errorf("%d calls moved in one second, want at most a tenth of %d", mostMoved, crowdSize)
				}
				if back < crowdSize*99/100 {
					t.Errorf("%d of %d calls have returned, want nearly all", back, crowdSize)
				}
			})
		})
	}
}
