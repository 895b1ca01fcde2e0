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
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// The clusters of the management server. We keep a channel to the neighbour open, so that the
// shared stream survives when the channel under test is replaced.
const (
	cluster   = "sim"
	neighbour = "neighbour"
)

const temporaryChannels = 8

type edsSource struct {
	w                      *World
	controls               []*control
	aggregate              bool
	fallbackOnReachability bool // the channel uses the second server only while the first can't be reached
	neighbours             []*grpc.ClientConn
	opened                 int
}

func newEDS(w *World, truth EndpointSet) *edsSource {
	s := &edsSource{w: w, fallbackOnReachability: w.rand.IntN(2) == 0, aggregate: w.rand.IntN(4) > 0}
	addresses := []string{controlAddress, secondAddress}
	for _, address := range addresses[:1+min(1, w.rand.IntN(3))] {
		s.controls = append(s.controls, newControl(w.network, w.Log, address, s.aggregate, truth))
	}
	return s
}

func (s *edsSource) Target() string {
	target, params := "eds://"+controlAddress, url.Values{}
	if len(s.controls) > 1 {
		target += "," + secondAddress
		if s.fallbackOnReachability {
			params.Set("fallbackOnReachabilityOnly", "true")
		}
	}
	target += "/" + cluster
	if s.aggregate {
		params.Set("cds", "true")
	}
	if len(params) > 0 {
		target += "?" + params.Encode()
	}
	return target
}

func (s *edsSource) Options() []given.Option {
	network := &adsclient.Network{Dial: s.w.network.Dial}
	return []given.Option{
		given.Sources(eds.WithInsecure()),
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

// openTemporary opens several channels to new clusters in quick succession, so that when a channel
// opens, the request for the previous one's cluster may not have been sent yet.
func (s *edsSource) openTemporary() {
	for range temporaryChannels {
		s.opened++
		if err := s.open(fmt.Sprint("passer", s.opened)); err != nil {
			s.w.Log.Break(ruleWait, "a channel cannot be opened: %v", err)
		}
	}
}

func (s *edsSource) closeTemporary() {
	for _, cc := range s.neighbours[1:] {
		_ = cc.Close()
	}
	s.neighbours = s.neighbours[:1]
}

func (s *edsSource) Visible(truth EndpointSet) EndpointSet { return truth }

func (s *edsSource) Publish(truth EndpointSet) {
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
	switch name := "the management server " + c.address; r.IntN(7) {
	case 0:
		c.down()
		return name + " is killed"
	case 1:
		c.set(func(c *control) { c.hangs = true })
		return name + " hangs"
	case 2:
		c.network.SetLink(c.address, Link{LoseIn: true, LoseOut: true})
		return name + " is cut off"
	case 3:
		c.network.SetLink(c.address, Link{LoseIn: true})
		return name + " loses its responses"
	case 4:
		c.set(func(c *control) { c.code = codes.PermissionDenied })
		return name + " ends streams with PERMISSION_DENIED"
	case 5:
		c.set(func(c *control) { c.code = codes.Internal })
		return name + " ends streams with INTERNAL"
	default:
		c.sendInvalid()
		return name + " sends an invalid resource"
	}
}

func (c *control) sendInvalid() { c.set(func(c *control) { c.sendsInvalid = true; c.version++ }) }

func (s *edsSource) Restore() {
	for _, c := range s.controls {
		c.restore()
	}
}

func (c *control) restore() {
	c.network.SetLink(c.address, Link{})
	c.up()
	c.set(func(c *control) {
		if c.sendsInvalid {
			c.version++
		}
		c.hangs, c.sendsInvalid, c.code = false, false, codes.OK
	})
}

func (s *edsSource) KeepsEmptyPriorities() bool { return s.aggregate }

func (s *edsSource) Lag() time.Duration { return time.Second }

// Recovery adds up the stream's keepalive time and timeout, the longest backoff, the timeout of one
// connection attempt, and 15 s for a response.
func (s *edsSource) Recovery() time.Duration {
	return 5*time.Minute + 20*time.Second + 144*time.Second + minConnectTimeout + 15*time.Second
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
