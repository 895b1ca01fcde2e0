package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/eds"
	"github.com/understudy-lb/understudy/internal/adsclient"
)

// The clusters of an eds: world. A channel to the second keeps the stream, which both
// share, open while the first channel is closed and opened again.
const (
	cluster   = "sim"
	neighbour = "neighbour"
)

// edsSource is a source of an eds: target: a management server of the world.
type edsSource struct {
	w          *World
	control    *control
	neighbours []*grpc.ClientConn
	passers    int // channels to clusters that nobody else asks for, so far
}

func newEDS(w *World) *edsSource {
	return &edsSource{w: w, control: newControl(w.network, w.Log, w.truth)}
}

func (s *edsSource) Target() string { return "eds://" + controlAddress + "/" + cluster }

func (s *edsSource) Options() []discovery.Option {
	network := &adsclient.Network{Dial: s.w.network.Dial}
	return []discovery.Option{
		eds.WithInsecure(),
		discovery.OwnOption(func(o *adsclient.Options) { o.Network = network }),
	}
}

// open opens a channel to a neighbour, which has the stream in common with the world's.
func (s *edsSource) open(name string) error {
	cc, err := grpc.NewClient("eds://"+controlAddress+"/"+name,
		grpc.WithResolvers(s.w.builders...),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(s.w.network.Dial),
		grpc.WithIdleTimeout(0))
	if err != nil {
		return fmt.Errorf("a neighbour's channel: %w", err)
	}
	s.neighbours = append(s.neighbours, cc)
	cc.Connect()
	return nil
}

// passBy opens channels to clusters that were not asked for before.
func (s *edsSource) passBy() {
	for range 3 {
		s.passers++
		if err := s.open(fmt.Sprint("passer", s.passers)); err != nil {
			s.w.Log.Break(ruleWait, "a channel cannot be opened: %v", err)
		}
	}
}

// leave closes the channels that passed by.
func (s *edsSource) leave() {
	for _, cc := range s.neighbours[1:] {
		_ = cc.Close()
	}
	s.neighbours = s.neighbours[:1]
}

// Sees returns truth as it is: a management server says everything.
func (s *edsSource) Sees(truth Truth) Truth { return truth }

func (s *edsSource) Publish(truth Truth) { s.control.publish(truth) }

func (s *edsSource) Fail(r *rand.Rand) string {
	switch r.IntN(7) {
	case 0:
		s.control.down()
		return "the management server is killed"
	case 1:
		s.control.set(func(c *control) { c.hung = true })
		return "the management server hangs"
	case 2:
		s.w.network.SetLink(controlAddress, Link{LoseIn: true, LoseOut: true})
		return "the management server is cut off"
	case 3:
		s.w.network.SetLink(controlAddress, Link{LoseIn: true})
		return "the management server's answers are lost"
	case 4:
		s.control.set(func(c *control) { c.code = codes.PermissionDenied })
		return "the management server ends streams with PERMISSION_DENIED"
	case 5:
		s.control.set(func(c *control) { c.code = codes.Internal })
		return "the management server ends streams with INTERNAL"
	}
	s.refuse()
	return "the management server sends what must be refused"
}

// refuse sends a resource that must be refused.
func (s *edsSource) refuse() {
	s.control.set(func(c *control) { c.bad = true; c.version++ })
}

func (s *edsSource) Restore() {
	s.w.network.SetLink(controlAddress, Link{})
	s.control.up()
	s.control.set(func(c *control) {
		if c.bad {
			c.version++
		}
		c.hung, c.bad, c.code = false, false, codes.OK
	})
}

// Lag is that of a response.
func (s *edsSource) Lag() time.Duration { return time.Second }

// Recovery is the keepalive of the stream, then the longest backoff, and an attempt.
func (s *edsSource) Recovery() time.Duration {
	return 5*time.Minute + 20*time.Second + 144*time.Second + attemptTime + 15*time.Second
}

func (s *edsSource) Close() {
	for _, cc := range s.neighbours {
		_ = cc.Close()
	}
	s.w.network.SetLink(controlAddress, Link{})
	s.control.down()
}
