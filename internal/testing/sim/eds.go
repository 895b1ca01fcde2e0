package sim

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/eds"
	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// The clusters of the management server. A channel to the second one keeps the shared stream open
// while the channel under test is replaced.
const (
	cluster   = "sim"
	neighbour = "neighbour"
)

const passers = 8

// edsSource is the source of an eds: target: one or two management servers.
type edsSource struct {
	w          *World
	controls   []*control
	list       *list // the clusters of the aggregate in the target; nil if the target names endpoints
	reachable  bool  // the second server is used as soon as the first cannot be reached
	neighbours []*grpc.ClientConn
	passers    int
}

func newEDS(w *World, truth Truth) *edsSource {
	s := &edsSource{w: w, reachable: w.rand.IntN(2) == 0}
	if w.rand.IntN(4) > 0 {
		s.list = newList(w.rand)
	}
	addresses := []string{controlAddress, secondAddress}
	for _, address := range addresses[:1+min(1, w.rand.IntN(3))] {
		s.controls = append(s.controls, newControl(w.network, w.Log, address, s.list, truth))
	}
	return s
}

func (s *edsSource) Target() string {
	target, given := "eds://"+controlAddress, url.Values{}
	if len(s.controls) > 1 {
		target += "," + secondAddress
		if s.reachable {
			given.Set("fallbackOnReachabilityOnly", "true")
		}
	}
	target += "/" + cluster
	if s.list != nil {
		given.Set("cds", "true")
	}
	if len(given) > 0 {
		target += "?" + given.Encode()
	}
	return target
}

func (s *edsSource) Options() []given.Option {
	network := &adsclient.Network{Dial: s.w.network.Dial}
	return []given.Option{
		given.Sources(eds.WithInsecure()),
		given.Sources(failover.WithResolvers(&s.w.dns)),
		given.Sources(discovery.OwnOption(func(o *adsclient.Options) { o.Network = network })),
	}
}

func (s *edsSource) open(name string) error {
	cc, err := grpc.NewClient("eds://"+controlAddress+"/"+name,
		grpc.WithResolvers(s.w.builders...),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(s.w.network.Dial),
		grpc.WithIdleTimeout(0))
	if err != nil {
		return fmt.Errorf("channel of another cluster: %w", err)
	}
	s.neighbours = append(s.neighbours, cc)
	cc.Connect()
	return nil
}

// passBy opens channels to many new clusters in a row. Requests may still wait to be sent when the
// next channel opens.
func (s *edsSource) passBy() {
	for range passers {
		s.passers++
		if err := s.open(fmt.Sprint("passer", s.passers)); err != nil {
			s.w.Log.Break(ruleWait, "a channel cannot be opened: %v", err)
		}
	}
}

func (s *edsSource) leave() {
	for _, cc := range s.neighbours[1:] {
		_ = cc.Close()
	}
	s.neighbours = s.neighbours[:1]
}

func (s *edsSource) Sees(truth Truth) Truth {
	if s.list != nil {
		return s.list.seen(truth)
	}
	return truth
}

func (s *edsSource) redetect(r *rand.Rand) {
	if s.list != nil {
		s.list.redraw(r)
	}
}

func (s *edsSource) Publish(truth Truth) {
	for _, c := range s.controls {
		c.publish(truth)
	}
}

func (s *edsSource) Fail(r *rand.Rand) string {
	if len(s.controls) == 1 || r.IntN(2) == 0 {
		return s.controls[0].fail(r)
	}
	if r.IntN(3) == 0 {
		return s.controls[1].fail(r)
	}
	return s.controls[0].fail(r) + "; " + s.controls[1].fail(r)
}

func (c *control) fail(r *rand.Rand) string {
	switch who := "the management server " + c.address; r.IntN(7) {
	case 0:
		c.down()
		return who + " is killed"
	case 1:
		c.set(func(c *control) { c.hung = true })
		return who + " hangs"
	case 2:
		c.network.SetLink(c.address, Link{LoseIn: true, LoseOut: true})
		return who + " is cut off"
	case 3:
		c.network.SetLink(c.address, Link{LoseIn: true})
		return who + " loses its responses"
	case 4:
		c.set(func(c *control) { c.code = codes.PermissionDenied })
		return who + " ends streams with PERMISSION_DENIED"
	case 5:
		c.set(func(c *control) { c.code = codes.Internal })
		return who + " ends streams with INTERNAL"
	default:
		c.refuse()
		return who + " sends an invalid resource"
	}
}

func (c *control) refuse() { c.set(func(c *control) { c.bad = true; c.version++ }) }

func (s *edsSource) Restore() {
	for _, c := range s.controls {
		c.restore()
	}
}

func (c *control) restore() {
	c.network.SetLink(c.address, Link{})
	c.up()
	c.set(func(c *control) {
		if c.bad {
			c.version++
		}
		c.hung, c.bad, c.code = false, false, codes.OK
	})
}

func (s *edsSource) Fixed() bool { return s.list != nil }

func (s *edsSource) Lag() time.Duration { return time.Second }

// Recovery is the sum of the keepalive timeout of the stream, the longest backoff and one
// connection attempt.
func (s *edsSource) Recovery() time.Duration {
	return 5*time.Minute + 20*time.Second + 144*time.Second + attemptTime + 15*time.Second
}

func (s *edsSource) Close() {
	for _, cc := range s.neighbours {
		_ = cc.Close()
	}
	for _, c := range s.controls {
		c.network.SetLink(c.address, Link{})
		c.down()
	}
}
