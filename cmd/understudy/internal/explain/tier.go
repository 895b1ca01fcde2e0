package explain

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/topology"
)

// Tier is what becomes of one priority, while those above it are down and nothing else is.
type Tier struct {
	Priority uint32 `json:"priority"`
	// Cluster is the one that it is of, where the cluster is an aggregate.
	Cluster string `json:"cluster,omitempty"`
	// Endpoints is how many may get calls.
	Endpoints int `json:"endpoints"`
	// Standby is set where it is connected before it is needed, while priority 0 is used.
	Standby bool `json:"standby,omitempty"`
	// LeftAfter is how many of its endpoints must be lost for the calls to leave it, the
	// heaviest first.
	LeftAfter int `json:"left_after"`
	// Next is the priority that the calls go to then, nil where they fail.
	Next *uint32 `json:"next"`
	// ErrorsTo is the priority that the calls go to where all its endpoints answer every
	// call with an error: its own where they stay.
	ErrorsTo uint32 `json:"errors_to"`
}

// tiers tries out what becomes of each priority.
type tiers struct {
	plan     plan // without drops
	settings topology.Settings
	result   *Result
	owner    map[partAddress]*Endpoint
}

// addTiers notes what becomes of each priority, where these are not split.
func (r *Result) addTiers(ctx context.Context, parts []clusterfile.Mechanism, settings topology.Settings) error {
	if settings.Near().Prefer != "" {
		return nil // the numbers of near groups are not those of the file
	}
	p, err := planOf(parts, settings, false) // what is dropped goes nowhere
	if err != nil {
		return err
	}
	t := tiers{p, settings, r, r.owners()}
	for priority := range uint32(len(p.clusters)) {
		tier, err := t.measure(ctx, priority)
		if err != nil {
			return err
		}
		if len(parts) > 1 {
			tier.Cluster = p.clusters[priority]
		}
		r.Tiers = append(r.Tiers, tier)
	}
	return nil
}

// measure tries out what becomes of a priority.
func (t *tiers) measure(ctx context.Context, priority uint32) (Tier, error) {
	tier := Tier{Priority: priority, Standby: priority > 0 && int(priority) <= t.settings.WarmStandby, ErrorsTo: priority}
	endpoints := t.heaviest(priority)
	tier.Endpoints = len(endpoints)
	if tier.Endpoints == 0 {
		next, err := t.goTo(ctx, priority, nil)
		tier.Next = next
		return tier, err
	}
	var failed error
	stays := func(lost int) bool {
		to, err := t.goTo(ctx, priority, endpoints[:lost])
		failed = errors.Join(failed, err)
		return to != nil && *to == priority
	}
	tier.LeftAfter = tier.Endpoints
	if t.settings.MinReady > 0 { // else the last one is enough
		tier.LeftAfter = 1 + sort.Search(tier.Endpoints-1, func(i int) bool { return failed != nil || !stays(i+1) })
	}
	if failed != nil {
		return tier, failed
	}
	next, err := t.goTo(ctx, priority, endpoints[:tier.LeftAfter])
	if err != nil {
		return tier, err
	}
	tier.Next = next
	if t.settings.OutlierDetection {
		tier.ErrorsTo, err = t.errorsTo(ctx, priority, len(endpoints))
	}
	return tier, err
}

// heaviest returns the endpoints of a priority that may get calls, the heaviest first.
func (t *tiers) heaviest(priority uint32) []*Endpoint {
	sums := make(map[string]uint64)         // of the weights of a locality's endpoints
	connected := make(map[partAddress]bool) // a subset may leave some out
	for _, e := range t.plan.tree.Endpoints {
		connected[partAddressOf(e.Addresses[0])] = true
	}
	var all []*Endpoint
	for i := range t.result.Endpoints {
		e := &t.result.Endpoints[i]
		if e.Priority == priority && e.LocalityWeight > 0 && e.Health == "" && connected[partAddress{e.part, e.Address}] {
			all = append(all, e)
			sums[e.Locality] += uint64(e.Weight)
		}
	}
	part := func(e *Endpoint) float64 {
		return float64(e.LocalityWeight) * float64(e.Weight) / float64(sums[e.Locality])
	}
	slices.SortStableFunc(all, func(a, b *Endpoint) int { return cmp.Compare(part(b), part(a)) })
	return all
}

// down returns which addresses are down: those above a priority, and those of what is lost.
func (t *tiers) down(priority uint32, lost []*Endpoint) func(partAddress) bool {
	return func(address partAddress) bool {
		e := t.owner[address]
		return e.Priority < priority || slices.Contains(lost, e)
	}
}

// goTo returns the priority that calls go to, nil where they fail.
func (t *tiers) goTo(ctx context.Context, priority uint32, lost []*Endpoint) (*uint32, error) {
	s, err := start(t.plan, t.down(priority, lost))
	if err != nil {
		return nil, err
	}
	defer s.root.Close()
	if err := s.bringUp(ctx); err != nil {
		return nil, err
	}
	result, err := s.channel.published().Picker.Pick(balancer.PickInfo{Ctx: ctx})
	if err != nil {
		return nil, nil //nolint:nilerr // the calls fail: that is the answer
	}
	return &t.owner[result.SubConn.(*subConn).address].Priority, nil
}

// errorsTo returns the priority that calls go to where those of a priority fail. Each of
// its endpoints gets as many as outlier detection may want to see, and some more, since
// the picker of many endpoints is not made anew for each.
func (t *tiers) errorsTo(ctx context.Context, priority uint32, endpoints int) (uint32, error) {
	s, err := start(t.plan, t.down(priority, nil))
	if err != nil {
		return 0, err
	}
	defer s.root.Close()
	if err := s.bringUp(ctx); err != nil {
		return 0, err
	}
	const row = 50 // calls elsewhere that tell that they stay there
	elsewhere := 0
	for range 50*endpoints + 1000 {
		result, err := s.channel.published().Picker.Pick(balancer.PickInfo{Ctx: ctx})
		if err != nil {
			return 0, err
		}
		to := t.owner[result.SubConn.(*subConn).address].Priority
		if elsewhere++; to == priority {
			elsewhere = 0
			result.Done(balancer.DoneInfo{Err: status.Error(codes.Internal, "out of order"), BytesSent: true, BytesReceived: true})
		}
		if elsewhere == row {
			return to, nil
		}
		if err := s.settle(ctx); err != nil {
			return 0, err
		}
	}
	return priority, nil
}
