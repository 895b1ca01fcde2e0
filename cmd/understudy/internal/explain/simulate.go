package explain

import (
	"context"
	"errors"
	"runtime"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// simulation is a tree of policies over a channel without a network.
type simulation struct {
	channel *channel
	root    balancer.Balancer
	update  balancer.ClientConnState
	rounds  int // of updates
}

// start builds the tree's policies, with the addresses for which down is true out of
// reach.
func start(p plan, down func(partAddress) bool) (*simulation, error) {
	var policy lbconfig.Policy
	if err := policy.UnmarshalJSON(p.config); err != nil {
		return nil, err
	}
	c := &channel{down: down}
	state := stateattr.SetChannel(resolver.State{Endpoints: p.tree.Endpoints}, &stateattr.Channel{Names: p.names, Failures: p.failures, Empty: p.tree.Why})
	return &simulation{
		channel: c,
		root:    policy.Builder.Build(c, balancer.BuildOptions{}),
		update: balancer.ClientConnState{
			ResolverState:  state,
			BalancerConfig: policy.Config,
		},
		rounds: 2 + len(p.tree.Priorities()),
	}, nil
}

// bringUp gives the policies their endpoints, and returns when they have settled. It does so
// again, because weighted_round_robin takes its time with pickers of many endpoints, except
// where an update asks for one; and once more for each priority, because too little of one
// that is then seen brings up the next.
func (s *simulation) bringUp(ctx context.Context) error {
	for range s.rounds {
		if err := s.root.UpdateClientConnState(s.update); err != nil && !errors.Is(err, balancer.ErrBadResolverState) {
			return err
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settle runs the channel's events until nothing happens any more. What a policy does
// it does on the stack of an event, or on a goroutine of its serializer: where there is
// no such goroutine, and no event, there will be none.
func (s *simulation) settle(ctx context.Context) error {
	for ctx.Err() == nil {
		if serial.Background() > 0 {
			runtime.Gosched()
			continue
		}
		if !s.channel.run() {
			return nil
		}
	}
	return context.Cause(ctx)
}

// picks is how many calls are tried. The policies' shares are exact, so that each
// measured one is at most a few calls off.
const picks = 1_000_000

// counts is what became of so many calls.
type counts struct {
	byAddress map[partAddress]int
	dropped   int
	err       error // that of a call that failed, if one did; rather than a drop's
}

// countPicks builds the tree's policies, with the addresses for which down is true
// out of reach, and returns what becomes of so many calls.
func countPicks(ctx context.Context, p plan, down func(partAddress) bool) (counts, error) {
	s, err := start(p, down)
	if err != nil {
		return counts{}, err
	}
	defer s.root.Close()
	if err := s.bringUp(ctx); err != nil {
		return counts{}, err
	}
	return countWith(s.channel.published().Picker)
}

func countWith(picker balancer.Picker) (counts, error) {
	c := counts{byAddress: make(map[partAddress]int)}
	for range picks {
		result, err := picker.Pick(balancer.PickInfo{Ctx: context.Background()})
		if errors.Is(err, balancer.ErrNoSubConnAvailable) {
			return counts{}, errors.New("the policies did not settle")
		}
		if err == nil {
			c.byAddress[result.SubConn.(*subConn).address]++
			continue
		}
		// Of our pickers' errors only a drop's is a status (docs/scenarios.md, decision 8).
		_, drop := status.FromError(err)
		if drop {
			c.dropped++
		}
		if !drop || c.err == nil {
			c.err = err
		}
	}
	return c, nil
}
