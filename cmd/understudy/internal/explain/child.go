package explain

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// A child simulates one child of the priority policy, with the policies below it: outlier
// detection, drops, and the policies of the localities.
type child struct {
	outliers   *lbconfig.OutlierDetection
	drops      []lbconfig.DropCategory
	targets    *lbconfig.WeightedTarget
	localities map[string]*locality
	size       int
}

type report struct {
	ready      bool
	condition  priority.Condition
	readyShare float64
	// addShares distributes a fraction of the calls over the endpoints: it adds each endpoint's
	// share to the map. It is nil if ready is false.
	addShares func(calls float64, shares map[*Endpoint]float64)
	err       string // why calls fail, if ready is false
}

var conditions = [...]priority.Condition{
	outlierdetection.Usable:   priority.Usable,
	outlierdetection.Emptied:  priority.Emptied,
	outlierdetection.HalfOpen: priority.HalfOpen,
}

func newChild(policy lbconfig.Policy) (*child, error) {
	c := &child{localities: make(map[string]*locality)}
	var err error
	if c.outliers, err = configOf[*lbconfig.OutlierDetection](policy); err != nil {
		return nil, err
	}
	drop, err := configOf[*lbconfig.Drop](c.outliers.ChildPolicy)
	if err != nil {
		return nil, err
	}
	c.drops = drop.DropCategories
	if c.targets, err = configOf[*lbconfig.WeightedTarget](drop.ChildPolicy); err != nil {
		return nil, err
	}
	for name, target := range c.targets.Targets {
		_, pickFirst := target.ChildPolicy.Config.(*lbconfig.PickFirst)
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

// report returns the child's report under a hypothesis. failing means that every endpoint of the
// child fails enough calls in a row to be ejected.
func (c *child) report(h hypothesis, failing bool) report {
	for _, l := range c.localities {
		for _, e := range l.endpoints {
			e.connect(h.down)
			e.ejected = false
		}
	}
	condition := priority.Usable
	if failing {
		condition = c.eject()
	}
	for _, l := range c.localities {
		l.reportStates()
	}
	r := c.localityReport()
	r.condition = condition
	return r
}

// eject runs outlier detection as if all calls to the child's endpoints failed. It marks the
// endpoints that are ejected.
func (c *child) eject() priority.Condition {
	core := outlierdetection.New[*endpoint](func() uint32 { return 0 })
	var endpoints []*outlierdetection.Endpoint[*endpoint]
	for _, name := range slices.Sorted(maps.Keys(c.localities)) {
		for _, e := range c.localities[name].endpoints {
			endpoints = append(endpoints, &outlierdetection.Endpoint[*endpoint]{Attached: e})
		}
	}
	start := time.Unix(0, 0)
	core.Update(outlierConfig(c.outliers), endpoints, start)
	for _, e := range endpoints {
		core.Connection(e, outlierdetection.Connecting)
		core.Connection(e, e.Attached.connection())
	}
	for _, e := range endpoints {
		if e.Attached.connected() {
			core.Failed(e, start)
		}
	}
	core.Take()
	for _, e := range endpoints {
		e.Attached.ejected = e.VisiblyEjected()
	}
	return conditions[core.Phase()]
}

// outlierConfig returns the configuration of outlier detection. It enables only the detection of
// consecutive failures, because the other algorithms need time to pass.
func outlierConfig(o *lbconfig.OutlierDetection) outlierdetection.Config {
	config := outlierdetection.Config{
		Interval:           time.Duration(o.Interval),
		BaseEjectionTime:   time.Duration(o.BaseEjectionTime),
		MaxEjectionTime:    time.Duration(o.MaxEjectionTime),
		MaxEjectionPercent: o.MaxEjectionPercent,
		ReportEmptied:      o.ReportEmptied,
	}
	if consecutive := o.ConsecutiveFailuresEjection; consecutive != nil {
		config.ConsecutiveFailuresEjection = &outlierdetection.ConsecutiveFailuresEjection{Failures: consecutive.Failures, EnforcementPercentage: consecutive.EnforcementPercentage}
	}
	return config
}

func (c *child) localityReport() report {
	var core weightedtarget.Core
	core.SetBalance(c.balance())
	c.update(&core, core.Update(slices.Sorted(maps.Keys(c.targets.Targets)), 0))
	for actions := core.Rebalance(); len(actions) > 0; actions = core.Rebalance() {
		c.update(&core, actions)
	}
	state := core.Publish()
	names := core.In(state)
	r := report{ready: state == weightedtarget.Ready}
	if !r.ready {
		if len(names) > 0 {
			r.err = c.localities[names[0]].failure()
		}
		return r
	}
	r.readyShare = c.readyShares(&core)
	r.addShares = func(calls float64, shares map[*Endpoint]float64) {
		sum := 0.0
		for _, name := range names {
			sum += float64(core.Weight(name, c.targets.Targets[name].Weight))
		}
		for _, name := range names {
			c.localities[name].addShares(calls*float64(core.Weight(name, c.targets.Targets[name].Weight))/sum, shares)
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
		_, failed := l.readyShares()
		core.SetFailedShare(a.Child, failed)
	}
}

func (c *child) balance() *weightedtarget.Balance {
	b := c.targets.Balance
	if b == nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(b.Zones))
	balance := &weightedtarget.Balance{ClientZone: slices.Index(names, b.Own), Zones: make([]weightedtarget.Zone, len(names))}
	for i, name := range names {
		balance.Zones[i] = weightedtarget.Zone{Callers: b.Zones[name].Callers, Capacities: make(map[string]float64)}
	}
	for name, target := range c.targets.Targets {
		if i := slices.Index(names, target.Zone); i >= 0 && len(c.localities[name].endpoints) > 0 {
			balance.Zones[i].Capacities[name] = target.Capacity
		}
	}
	return balance
}

func (c *child) readyShares(core *weightedtarget.Core) float64 {
	var ready, total float64
	for _, name := range slices.Sorted(maps.Keys(c.targets.Targets)) { // sorted, because the order affects the sum of floats
		target := c.targets.Targets[name]
		weight := float64(target.Weight)
		if core.Balanced() {
			if weight = target.Capacity; !core.Has(name) || len(c.localities[name].endpoints) == 0 {
				continue
			}
		}
		total += weight
		if l := c.localities[name]; l.ready() {
			share, _ := l.readyShares()
			ready += weight * share
		}
	}
	if total == 0 {
		return 1
	}
	return ready / total
}
