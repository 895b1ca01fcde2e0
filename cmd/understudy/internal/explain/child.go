package explain

import (
	"maps"
	"slices"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// A child simulates one child of the priority policy, with the policies below it: drops, and the
// policies of the localities. Nothing is ejected, because no calls are made.
type child struct {
	drops      []lbconfig.DropCategory
	targets    *lbconfig.WeightedTarget
	localities map[string]*locality
	size       int
}

type report struct {
	ready bool
	// addShares distributes a fraction of the calls over the endpoints: it adds each endpoint's
	// share to the map. It is nil if ready is false.
	addShares func(calls float64, shares map[*Endpoint]float64)
	err       string // why calls fail, if ready is false
}

func newChild(policy lbconfig.Policy) (*child, error) {
	c := &child{localities: make(map[string]*locality)}
	outliers, err := configOf[*lbconfig.OutlierDetection](policy)
	if err != nil {
		return nil, err
	}
	drop, err := configOf[*lbconfig.Drop](outliers.ChildPolicy)
	if err != nil {
		return nil, err
	}
	c.drops = drop.DropCategories
	if c.targets, err = configOf[*lbconfig.WeightedTarget](drop.ChildPolicy); err != nil {
		return nil, err
	}
	for name, target := range c.targets.Targets {
		chosen, foreign := target.ChildPolicy.Config.(*lbconfig.EndpointPolicy)
		pickFirst := false
		if foreign {
			_, pickFirst = chosen.ChildPolicy.Config.(*lbconfig.PickFirst)
		}
		c.localities[name] = newLocality(pickFirst)
	}
	return c, nil
}

func (s *simulation) add(e resolver.Endpoint, owners map[mechanismAddress]*Endpoint) {
	path := hierarchy.Path(e)
	if len(path) != 2 || len(e.Addresses) == 0 || s.children[path[0]] == nil {
		return
	}
	c := s.children[path[0]]
	l := c.localities[path[1]]
	if l == nil {
		return
	}
	l.add(addressesOf(e, owners), max(1, weight.FromEndpoint(e).Weight))
	c.size++
}

func (c *child) finish() {
	for _, l := range c.localities {
		l.finish()
	}
}

func (c *child) report(h hypothesis) report {
	for _, l := range c.localities {
		for _, e := range l.endpoints {
			e.connect(h.down)
		}
	}
	for _, l := range c.localities {
		l.reportStates()
	}
	return c.localityReport()
}

func (c *child) localityReport() report {
	var core weightedtarget.Core
	c.update(&core, core.Update(slices.Sorted(maps.Keys(c.targets.Targets)), 0))
	state := core.Publish()
	names := core.In(state)
	r := report{ready: state == weightedtarget.Ready}
	if !r.ready {
		if len(names) > 0 {
			r.err = c.localities[names[0]].failure()
		}
		return r
	}
	r.addShares = func(calls float64, shares map[*Endpoint]float64) {
		sum := 0.0
		for _, name := range names {
			sum += float64(c.targets.Targets[name].Weight)
		}
		for _, name := range names {
			c.localities[name].addShares(calls*float64(c.targets.Targets[name].Weight)/sum, shares)
		}
	}
	return r
}

// update carries out the Update actions of the core: it reports the states of the localities.
func (c *child) update(core *weightedtarget.Core, actions []weightedtarget.Action) {
	for _, a := range actions {
		if a.Kind != weightedtarget.Update {
			continue
		}
		l := c.localities[a.Child]
		if !l.ready() {
			core.Report(a.Child, weightedtarget.TransientFailure)
			continue
		}
		core.Report(a.Child, weightedtarget.Ready)
	}
}
