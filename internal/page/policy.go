package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	prioritycore "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

func (c *collection) policy(t *shell.Tree, share float64) *Policy {
	p := &Policy{}
	if !t.Busy.IsZero() && c.now.Sub(t.Busy) >= busyAfter {
		p.BusySince = timeOf(t.Busy)
	}
	if t.Snapshot == nil {
		return p
	}
	p.Policy, p.State, p.Since = t.Policy, t.State.String(), timeOf(t.Since)
	if t.Error != nil {
		p.Error = line(shell.Brief(t.Error), maxTextLength)
	}
	if t.Since.IsZero() {
		p.State = connectivity.Connecting.String()
	}
	if d, ok := t.Details.(shell.Priority); ok && d.Backoff > 0 {
		defer func(outer time.Duration) { c.backoff = outer }(c.backoff)
		c.backoff = d.Backoff
	}
	shares := c.shares(t, share, p)
	ejected := map[string]shell.Ejected{}
	if d, ok := t.Details.(shell.OutlierDetection); ok {
		for _, e := range d.Ejected {
			ejected[line(e.Name, maxNameLength)] = e
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
		p.counts.add(child)
	}
	p.sortChildren()
	if d, ok := t.Details.(shell.Priority); ok {
		for _, title := range d.Unused {
			p.Children = append(p.Children, &Child{Name: line(title, maxNameLength), State: connectivity.Idle.String(), Why: "not needed yet, so not connected"})
		}
	}
	c.fold(p)
	if len(p.Children) == 1 && p.Children[0].Name == "" && p.Children[0].Below != nil {
		p.absorb(p.Children[0].Below)
	}
	p.markEjected(ejected, c.now)
	return p
}

func scheduledOf(details any) []uint64 {
	switch d := details.(type) {
	case shell.WeightedTarget:
		return d.Scheduled()
	case shell.WeightedRoundRobin:
		return d.Scheduled()
	}
	return nil
}

// Notes about dropped calls and ejected endpoints are added to p.
func (c *collection) shares(t *shell.Tree, share float64, p *Policy) []float64 {
	shares := make([]float64, len(t.Children))
	weights := make([]float64, len(t.Children))
	var sum float64
	switch d := t.Details.(type) {
	case shell.Priority:
		p.offer(t, d, share, shares)
		return shares
	case []lbconfig.DropCategory:
		for _, category := range d {
			fraction := min(1, float64(category.RequestsPerMillion)/lbconfig.Million)
			share *= 1 - fraction
			p.Notes = append(p.Notes, fmt.Sprintf("drops %s %% as %s", printable.Percent(fraction), line(category.Category, maxNameLength)))
		}
	case shell.EndpointPolicy:
		p.Notes = append(p.Notes, line(d.Name, maxNameLength)+" picks the endpoints")
	case shell.OutlierDetection:
		if len(d.Ejected) > 0 {
			note := fmt.Sprintf("%d ejected", len(d.Ejected))
			if d.Hidden {
				note += ", none is left: they get the calls anyway"
			}
			p.Notes = append(p.Notes, note)
		}
	}
	for i, child := range t.Children {
		switch d := child.Details.(type) {
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

func (p *Policy) offer(t *shell.Tree, d shell.Priority, share float64, shares []float64) {
	// With overflow, we go through the READY priorities in order and offer each of them the
	// remaining calls. Whatever is left at the end is refused, unless there's another priority
	// worth waiting for.
	var ready []int
	awaited := false
	priority := func(i int) shell.PriorityChild {
		child, _ := t.Children[i].Details.(shell.PriorityChild)
		return child
	}
	for i := range t.Children {
		child := priority(i)
		awaited = awaited || child.CountsAs == prioritycore.Connecting && !child.Failover.IsZero()
		switch {
		case child.Share != nil && child.CountsAs == prioritycore.Ready && t.State == connectivity.Ready:
			ready = append(ready, i)
		case t.Children[i].Name == d.InUse && t.State != connectivity.TransientFailure: // if calls fail, nothing is in use
			shares[i] = share
		}
	}
	if len(ready) == 0 {
		return
	}
	slices.SortFunc(ready, func(a, b int) int { return cmp.Compare(priority(a).Priority, priority(b).Priority) })
	left := share
	for _, i := range ready {
		shares[i] = left * priority(i).Share().Fraction
		left -= shares[i]
	}
	switch {
	case d.Inner:
		shares[ready[len(ready)-1]] += left
	case left < share || !awaited:
		p.refused = left
	}
}

func (c *collection) child(s *shell.ChildSnapshot, below *shell.Tree, share float64) *Child {
	child := &Child{Name: line(s.Name, maxNameLength), State: s.State.String(), Since: timeOf(s.Since), Share: share}
	if s.Title != s.Name {
		child.Title = line(s.Title, maxNameLength)
	}
	if s.LastError != nil {
		child.Error, child.ErrorAt = line(shell.Brief(s.LastError), maxTextLength), timeOf(s.FailedAt)
	}
	child.order = stateOrder[child.State]
	var recent recents
	switch d := s.Details.(type) {
	case shell.PriorityChild:
		child.InUse = share > 0
		c.priority(child, d)
	case shell.Target:
		child.Weight = d.Weight
	case shell.Endpoint:
		child.Weight = d.Weight
		if next := s.FailedAt.Add(c.backoff); s.State == connectivity.TransientFailure && next.After(c.now) && !strings.Contains(child.Error, healthCheck) {
			child.NextAttempt = &next
		}
		if len(d.Addresses) > 1 {
			for _, a := range d.Addresses {
				child.Addresses = append(child.Addresses, line(a.Addr, maxNameLength))
			}
		}
		started, ended, failed := d.Record.Calls()
		child.Calls = &Calls{started, started - min(started, ended), failed}
		for i, seconds := range windows {
			recent[i] = d.Record.Recent(c.now, seconds)
		}
	}
	if child.Calls != nil {
		child.counts = counts{endpoints: 1, recent: recent}
		if child.State == connectivity.Ready.String() {
			child.counts.ready = 1
		}
	}
	if below != nil {
		child.Below = c.policy(below, share)
		child.counts = child.Below.counts
	}
	child.Recent = recentOf(child.counts.recent, c.created, c.now)
	return child
}

var stateOrder = map[string]int{"TRANSIENT_FAILURE": 0, "CONNECTING": 1, "IDLE": 2, "READY": 3} // problems first

func (c *collection) priority(child *Child, d shell.PriorityChild) {
	child.State, child.Since = d.CountsAs.String(), timeOf(d.Since)
	child.order = d.Priority
	if d.Priority < 0 {
		child.order = 1 << 30
	}
	child.Why = child.State
	if d.Why != "" {
		child.Why = line(d.Why, maxTextLength)
	}
	if d.Share != nil && d.CountsAs == prioritycore.Ready {
		s := d.Share()
		if child.lowest = s.Lowest; s.Fraction < 1 {
			child.Why, child.Cause = s.String(), s.Cause.String()
		}
	}
	switch {
	case d.Standby && !child.InUse:
		child.Why += ", on standby"
	case !d.Failover.IsZero() && child.InUse:
		child.Why = "connecting, the next priority takes over in " + printable.Duration(d.Failover.Sub(c.now))
	case !d.Failover.IsZero() && d.CountsAs == prioritycore.Connecting && child.Why != child.State:
		child.Why += ", connecting"
	case d.Failover.IsZero() && !d.Deactivation.IsZero():
		child.Why += ", not needed now, kept for " + printable.Duration(d.Deactivation.Sub(c.now))
	}
}

func (p *Policy) sortChildren() {
	slices.SortStableFunc(p.Children, func(a, b *Child) int {
		if a.Below != nil && b.Below != nil && a.Why == "" {
			return 0
		}
		return cmp.Compare(a.order, b.order)
	})
}

func (c *collection) fold(p *Policy) {
	limit, budget := c.perLocality, &c.rows
	if slices.ContainsFunc(p.Children, func(child *Child) bool { return child.Below != nil }) {
		limit, budget = maxSiblingBranches, &c.branches
	}
	limit = min(limit, *budget)
	if len(p.Children) <= limit {
		*budget -= len(p.Children)
		return
	}
	*budget -= limit
	p.Folded = make(map[string]int)
	for _, child := range p.Children[limit:] {
		p.Folded[child.State]++
	}
	p.Children = p.Children[:limit]
}

func (p *Policy) absorb(below *Policy) {
	// Policies like drop have a single unnamed child, so we show them as a layer on top of the
	// policy below.
	notes, busy := p.Notes, p.BusySince
	layer := Layer{p.Policy, p.State, p.Since, p.Error}
	*p = *below
	p.Notes = append(notes, p.Notes...)
	p.Through = append([]Layer{layer}, p.Through...)
	if busy != nil {
		p.BusySince = busy
	}
}

func (p *Policy) markEjected(ejected map[string]shell.Ejected, now time.Time) {
	if len(ejected) == 0 {
		return
	}
	for _, child := range p.Children {
		if child.Below != nil {
			child.Below.markEjected(ejected, now)
		} else if e, ok := ejected[child.Name]; ok {
			child.NextAttempt = nil
			child.EjectedBy, child.EjectedUntil = e.By.String(), timeOf(e.Until)
			child.Ejected = "ejected by " + causes[e.By]
			if e.Code != codes.OK {
				child.Ejected += " (" + printable.Code(e.Code) + ")"
			}
			if left := e.Until.Sub(now); left > 0 {
				child.Ejected += ", for " + printable.Duration(left) + " more"
			} else {
				child.Ejected += ", until the interval is over"
			}
		}
	}
}

const healthCheck = "the health check says" // it's connected, so there's no next attempt

var causes = [...]string{
	core.None:                "nobody",
	core.SuccessRate:         "its success rate",
	core.FailurePercentage:   "its failure percentage",
	core.ConsecutiveFailures: "failures in a row",
}
