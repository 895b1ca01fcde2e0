package rehearse

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/grpc/experimental/balancer/weight"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// OfUpdate returns the world that a channel with this update would see: its priorities, a server for
// each endpoint in order, and its policy. We can't know how large the servers are. All priorities
// get the outlier detection of the first.
func OfUpdate(update topology.Update) World {
	config := update.Config()
	n := len(config.Priorities)
	w := World{Priorities: make([][]Server, n), Drop: make([]float64, n), Policy: Policy{
		Config: core.Config{
			SourcePriorities: config.SourcePriorities, FailoverTimeout: time.Duration(config.FailoverTimeout), ChildRetention: time.Duration(config.ChildRetention),
			WarmStandby: int(config.WarmStandby), Overflow: config.Overflow,
		},
		Share: share.Config{Ramp: time.Duration(config.Ramp), Uneven: config.PerPriority}, MaxConnectBackoff: Recommended().MaxConnectBackoff,
	}}
	localities := make([]map[string]lbconfig.Target, n)
	for p, name := range config.Priorities {
		ejection := config.Children[name].Config.Config.(*lbconfig.OutlierDetection)
		drop := ejection.ChildPolicy.Config.(*lbconfig.Drop)
		passed := 1.0
		for _, d := range drop.DropCategories {
			passed *= 1 - float64(d.RequestsPerMillion)/lbconfig.Million
		}
		w.Drop[p], localities[p] = 1-passed, drop.ChildPolicy.Config.(*lbconfig.WeightedTarget).Targets
		if p == 0 {
			w.Policy.Ejection = outlierdetection.Config{
				Interval: time.Duration(ejection.Interval), BaseEjectionTime: time.Duration(ejection.BaseEjectionTime), MaxEjectionTime: time.Duration(ejection.MaxEjectionTime),
				MaxEjectionPercent:          ejection.MaxEjectionPercent,
				SuccessRateEjection:         (*outlierdetection.SuccessRateEjection)(ejection.SuccessRateEjection),
				FailurePercentageEjection:   (*outlierdetection.FailurePercentageEjection)(ejection.FailurePercentageEjection),
				ConsecutiveFailuresEjection: (*outlierdetection.ConsecutiveFailuresEjection)(ejection.ConsecutiveFailuresEjection),
			}
		}
	}
	for _, e := range update.Endpoints {
		path := hierarchy.Path(e)
		p := slices.Index(config.Priorities, path[0])
		w.Priorities[p] = append(w.Priorities[p], Server{Weight: max(1, weight.FromEndpoint(e).Weight), Locality: path[1], LocalityWeight: localities[p][path[1]].Weight})
	}
	return w
}

type Use struct {
	Priority int
	Shares   []float64
	Standby  []bool // for each priority, whether it's connected just in case
}

// Rest plays one client that makes no calls, and returns where its calls would go. In the first
// result, everything works. After that, the priorities lose their servers one after another,
// starting with the first.
func Rest(w World) (uses []Use) {
	const step = 2 * time.Second
	w.Clients = 1
	for p := range w.Priorities {
		w.Events = append(w.Events, Event{From: time.Duration(p+1) * step, To: forever, Priority: p, Server: All, Fault: Killed})
	}
	m := newModel(w, 1, Observer{})
	c := newChannel(m, 0)
	for p := range len(w.Priorities) + 1 {
		m.until(time.Duration(p+1)*step - 1)
		uses = append(uses, c.use())
	}
	return uses
}

func (c *channel) use() Use {
	u := Use{Priority: -1}
	for _, name := range c.names {
		u.Standby = append(u.Standby, c.core.Standby(name))
	}
	child := c.children[c.chosen]
	if child == nil || c.state != core.Ready {
		return u
	}
	u.Priority, u.Shares = child.number, make([]float64, len(child.endpoints))
	sum := 0.0
	child.setReady(child.reported)
	for _, l := range child.ready {
		l.setReady()
		sum += float64(cmp.Or(l.weight, 1))
	}
	for _, l := range child.ready {
		inLocality := 0.0
		for _, e := range l.ready {
			inLocality += float64(e.robin.Weight())
		}
		for _, e := range l.ready {
			u.Shares[e.server.index] = float64(cmp.Or(l.weight, 1)) / sum * float64(e.robin.Weight()) / inLocality
		}
	}
	return u
}
