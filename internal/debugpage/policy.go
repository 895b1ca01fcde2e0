package debugpage

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	prioritycore "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/shell"
)

// policy describes the policy of t for the page. share is its share of the channel's calls.
func (c *collection) policy(t *shell.Tree, share float64) *Policy {
	p := &Policy{}
	if !t.Busy.IsZero() && c.now.Sub(t.Busy) >= patience {
		p.BusySince = timeOf(t.Busy)
	}
	if t.Snapshot == nil {
		return p
	}
	p.Policy, p.State, p.Since = t.Policy, t.State.String(), timeOf(t.Since)
	if t.Error != nil {
		p.Error = line(shell.Brief(t.Error), longestText)
	}
	if t.Since.IsZero() {
		p.State = connectivity.Connecting.String()
	}
	shares := c.shares(t, share, p)
	ejected := map[string]shell.Ejected{}
	if d, ok := t.Details.(shell.OutlierDetection); ok {
		for _, e := range d.Ejected {
			ejected[line(e.Name, longestName)] = e
		}
	}
	scheduled := scheduledOf(t.Details)
	for i := range t.Children {
		child := c.child(&t.Children[i], t.Below[i], shares[i])
		if scheduled != nil {
			child.Scheduled = scheduled[i]
		}
		_, locality := t.Children[i].Details.(shell.Target)
		child.open = child.Share > 0 || locality && share > 0
		p.Children = append(p.Children, child)
		p.tally.add(child)
	}
	p.inOrder()
	if d, ok := t.Details.(shell.Priority); ok {
		for _, title := range d.Unused {
			p.Children = append(p.Children, &Child{Name: line(title, longestName), State: connectivity.Idle.String(), Why: "not needed yet, so not connected"})
		}
	}
	c.fold(p)
	if only := p.onlyChild(); only != nil {
		p.absorb(only)
	}
	p.eject(ejected, c.now)
	return p
}

// scheduledOf returns the number of scheduled calls of each child, or nil if the policy has no
// scheduler.
func scheduledOf(of any) []uint64 {
	switch d := of.(type) {
	case shell.WeightedTarget:
		return d.Scheduled()
	case shell.WeightedRoundRobin:
		return d.Scheduled()
	}
	return nil
}

// shares returns each child's share of the channel's calls. If some calls go to no child, it adds a
// note to p.
func (c *collection) shares(t *shell.Tree, share float64, p *Policy) []float64 {
	shares := make([]float64, len(t.Children))
	weights := make([]float64, len(t.Children))
	var sum float64
	switch d := t.Details.(type) {
	case []lbconfig.DropCategory:
		for _, category := range d {
			part := min(1, float64(category.RequestsPerMillion)/lbconfig.Million)
			share *= 1 - part
			p.Notes = append(p.Notes, fmt.Sprintf("drops %s %% as %s", printable.Percent(part), line(category.Category, longestName)))
		}
	case shell.OutlierDetection:
		if len(d.Ejected) > 0 {
			then := consequence[d.Tier]
			if then != "" && share > 0 {
				then = lastResort
			}
			p.Notes = append(p.Notes, fmt.Sprintf("%d ejected%s", len(d.Ejected), then))
		}
	}
	for i, child := range t.Children {
		switch d := child.Details.(type) {
		case shell.PriorityChild:
			// No priority is in use while calls fail.
			if in, ok := t.Details.(shell.Priority); ok && in.InUse == child.Name && t.State != connectivity.TransientFailure {
				weights[i] = 1
			}
		case shell.Target:
			if d.CountsAs.String() == connectivity.Ready.String() {
				weights[i] = float64(d.Weight)
			}
		case shell.Endpoint:
			if child.State == connectivity.Ready {
				weights[i] = float64(d.Weight)
			}
		default:
			weights[i] = 1
		}
		sum += weights[i]
	}
	for i := range shares {
		if sum > 0 {
			shares[i] = share * weights[i] / sum
		}
	}
	return shares
}

func (c *collection) child(s *shell.ChildSnapshot, below *shell.Tree, share float64) *Child {
	child := &Child{Name: line(s.Name, longestName), State: s.State.String(), Since: timeOf(s.Since), Share: share}
	if s.Title != s.Name {
		child.Title = line(s.Title, longestName)
	}
	if s.LastError != nil {
		child.Error, child.ErrorAt = line(shell.Brief(s.LastError), longestText), timeOf(s.FailedAt)
	}
	child.order = badness[child.State]
	var recent recents
	switch d := s.Details.(type) {
	case shell.PriorityChild:
		child.InUse = share > 0
		c.priority(child, d)
	case shell.Target:
		child.Weight = d.Weight
	case shell.Endpoint:
		child.Weight = d.Weight
		if len(d.Addresses) > 1 {
			for _, a := range d.Addresses {
				child.Addresses = append(child.Addresses, line(a.Addr, longestName))
			}
		}
		started, ended, failed := d.Record.Calls()
		child.Calls = &Calls{started, started - min(started, ended), failed}
		for i, seconds := range windows {
			recent[i] = d.Record.Recent(c.now, seconds)
		}
	}
	if child.Calls != nil {
		child.tally = tally{endpoints: 1, recent: recent}
		if child.State == connectivity.Ready.String() {
			child.tally.ready = 1
		}
	}
	if below != nil {
		child.Below = c.policy(below, share)
		child.tally = child.Below.tally
	}
	child.Recent = recentOf(child.tally.recent, c.began, c.now)
	return child
}

var consequence = map[shell.Condition]string{
	shell.Emptied:  ", none is left: another priority is used, if there is one",
	shell.HalfOpen: ", none is left: a few calls show whether that is over",
}

const lastResort = ", none is left: they get the calls anyway, because no other priority is better"

// badness is the sort key of an endpoint's state. States with problems come first.
var badness = map[string]int{"TRANSIENT_FAILURE": 0, "CONNECTING": 1, "IDLE": 2, "READY": 3}

func (c *collection) priority(child *Child, d shell.PriorityChild) {
	child.State, child.Since = d.CountsAs.String(), timeOf(d.Since)
	child.order = d.Priority
	if d.Priority < 0 {
		child.order = 1 << 30
	}
	left := func(what string, p shell.PriorityChild) {
		switch {
		case p.Standby:
			child.Why = what + ", on standby"
		case !p.Failover.IsZero() && !child.InUse:
			child.Why = what
			if p.CountsAs == prioritycore.Connecting && what != child.State {
				child.Why += ", connecting"
			}
		case !p.Failover.IsZero():
			child.Why = "connecting, the next priority steps in in " + printable.Duration(p.Failover.Sub(c.now))
		case !p.Failback.IsZero():
			child.Why = what + ", takes over in " + printable.Duration(p.Failback.Sub(c.now))
		case !p.Deactivation.IsZero():
			child.Why = what + ", not needed now, kept for " + printable.Duration(p.Deactivation.Sub(c.now))
		default:
			child.Why = what
		}
	}
	what := child.State
	if d.Why != "" {
		what = line(d.Why, longestText)
	}
	left(what, d)
}

func (p *Policy) inOrder() {
	slices.SortStableFunc(p.Children, func(a, b *Child) int {
		if a.Below != nil && b.Below != nil && a.Why == "" {
			return 0
		}
		return cmp.Compare(a.order, b.order)
	})
}

func (c *collection) fold(p *Policy) {
	most, budget := c.each, &c.rows
	if slices.ContainsFunc(p.Children, func(child *Child) bool { return child.Below != nil }) {
		most, budget = shownBranches, &c.branches
	}
	most = min(most, *budget)
	if len(p.Children) <= most {
		*budget -= len(p.Children)
		return
	}
	*budget -= most
	p.Folded = make(map[string]int)
	for _, child := range p.Children[most:] {
		p.Folded[child.State]++
	}
	p.Children = p.Children[:most]
}

// onlyChild returns the single unnamed child of a policy such as drop, or nil.
func (p *Policy) onlyChild() *Policy {
	if len(p.Children) == 1 && p.Children[0].Name == "" {
		return p.Children[0].Below
	}
	return nil
}

// absorb replaces p by the policy below it, but keeps the notes and the busy state of p.
func (p *Policy) absorb(below *Policy) {
	notes, busy := p.Notes, p.BusySince
	layer := Layer{p.Policy, p.State, p.Since, p.Error}
	*p = *below
	p.Notes = append(notes, p.Notes...)
	p.Through = append([]Layer{layer}, p.Through...)
	if busy != nil {
		p.BusySince = busy
	}
}

func (p *Policy) eject(ejected map[string]shell.Ejected, now time.Time) {
	if len(ejected) == 0 {
		return
	}
	for _, child := range p.Children {
		if child.Below != nil {
			child.Below.eject(ejected, now)
		} else if e, is := ejected[child.Name]; is {
			child.EjectedBy, child.EjectedUntil = e.By.String(), timeOf(e.Until)
			child.Ejected = "ejected by " + causes[e.By] + ", until the interval is over"
			if left := e.Until.Sub(now); left > 0 {
				child.Ejected = "ejected by " + causes[e.By] + ", for " + printable.Duration(left) + " more"
			}
		}
	}
}

var causes = [...]string{
	core.None:                "nobody",
	core.SuccessRate:         "its success rate",
	core.FailurePercentage:   "its failure percentage",
	core.ConsecutiveFailures: "failures in a row",
}
