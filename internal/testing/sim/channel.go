package sim

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/testing/prioritymodel"
)

const failing = connectivity.TransientFailure

// channel records what the policies of one gRPC channel report. When a child reports, our model of
// gRFC A56 gets the report before the priority policy does.
type channel struct {
	w  *World
	id int

	reportMu sync.Mutex

	mu                 sync.Mutex
	advancedAt         time.Time
	update             tree
	previousUpdate     tree
	model              *prioritymodel.Model
	children           map[string]*childState
	state              connectivity.State
	picker             balancer.Picker
	disagreedSeconds   int // seconds for which the policy has differed from the model
	priorities         []string
	previousPriorities []string
	updatedAt          time.Time
	inUpdate           bool
	delayedReports     []prioritymodel.Report          // from children that the model creates at the end of the update
	unhandledReports   map[string]prioritymodel.Report // by child; only for those that the model hasn't created yet
	truth              EndpointSet
	failovers          atomic.Int64
	lastFailover       time.Time
	coincidedAt        time.Time // when an update last coincided with a failover, or with a report of a child that only the policy has
	settled            bool      // since the last quiet period, nothing has happened that affects the priority in use
}

type childState struct {
	state      connectivity.State
	picker     balancer.Picker
	changedAt  time.Time
	readySince time.Time // if it isn't READY, when it last was
	reportedAt time.Time
	closed     bool // the child was closed, or its policy replaced, since its last report
}

var lastID atomic.Int64

func newChannel(w *World) *channel {
	c := &channel{w: w, id: int(lastID.Add(1)), advancedAt: time.Now(), model: prioritymodel.New(nil),
		children: make(map[string]*childState), unhandledReports: make(map[string]prioritymodel.Report)}
	c.model.React = c.react
	channels.Store(c.id, c)
	return c
}

func (c *channel) unregister() { channels.Delete(c.id) }

func (c *channel) advance() {
	elapsed := time.Since(c.advancedAt)
	c.advancedAt = time.Now()
	c.model.Advance(elapsed)
}

// beginUpdate starts an update of the model. As in gRFC A56, any reports until endUpdate belong to
// the update.
func (c *channel) beginUpdate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.previousPriorities, c.priorities, c.updatedAt = c.priorities, c.update.priorities, time.Now()
	c.recordCoincidence()
	c.model.BeginUpdate(c.w.settings.modelConfig(c.update))
	c.inUpdate = true
}

// endUpdate first lets the model choose a priority, then passes it the reports of new children.
func (c *channel) endUpdate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.model.EndUpdate()
	delayed := c.delayedReports
	c.inUpdate, c.delayedReports = false, nil
	for _, r := range delayed {
		c.reportToModel(r)
	}
}

// reportToModel keeps the report if the model hasn't created the child yet, which can happen
// because the policy may handle simultaneous events in a different order. The model then gets it
// along with the child. The caller holds the lock.
func (c *channel) reportToModel(r prioritymodel.Report) {
	if c.model.Updating(r.Text) == nil {
		if c.unhandledReports[r.Text] = r; time.Since(c.updatedAt) == 0 {
			c.coincidedAt = c.updatedAt
		}
		return
	}
	c.model.Report(r.Text, r.Text, r)
}

func (c *channel) react(child string) (reaction prioritymodel.Reaction) {
	if r, ok := c.unhandledReports[child]; ok {
		reaction.Reports = append(reaction.Reports, r)
		delete(c.unhandledReports, child)
	}
	return reaction
}

func (c *channel) childClosed(child string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unhandledReports, child)
	if entry := c.children[child]; entry != nil {
		entry.closed = true
	}
}

func (c *channel) childReported(child string, s balancer.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	entry := c.children[child]
	if entry == nil {
		entry = &childState{}
		c.children[child] = entry
	}
	if entry.changedAt.IsZero() || (entry.state == connectivity.Ready) != (s.ConnectivityState == connectivity.Ready) {
		entry.readySince = time.Now()
	}
	if entry.changedAt.IsZero() || entry.state != s.ConnectivityState {
		entry.changedAt = time.Now()
	}
	entry.reportedAt = time.Now()
	entry.state, entry.picker, entry.closed = s.ConnectivityState, s.Picker, false
	r := prioritymodel.Report{State: s.ConnectivityState.String(), Text: child}
	if s.ConnectivityState == failing {
		r.Err = child
	}
	if c.inUpdate && c.model.Updating(child) == nil {
		c.delayedReports = append(c.delayedReports, r)
		return
	}
	c.reportToModel(r)
}

func (c *channel) policyPublished(s balancer.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.picker = s.ConnectivityState, s.Picker
}

// mayUsePicker can't tell pickers that queue calls apart.
func (c *channel) mayUsePicker(child *childState) bool {
	p := c.picker
	return p != nil && reflect.TypeOf(p) == reflect.TypeOf(child.picker) && reflect.TypeOf(p).Comparable() && p == child.picker
}

// check runs once a second. The policy and the model may handle simultaneous events in a different
// order, so we tolerate differences of less than two seconds.
func (c *channel) check() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	if c.w.settings.overflow {
		c.checkPublished()
		return
	}
	want := c.model.Last()
	if want.State == "" {
		return
	}
	agree := want.State == c.state.String()
	child := want.Text
	// In TRANSIENT_FAILURE, the policy doesn't publish a child's picker, since its error names all
	// children.
	if agree && c.children[child] != nil && want.State != prioritymodel.TransientFailure {
		agree = c.mayUsePicker(c.children[child])
	}
	if agree || c.mayDifferByOrder() {
		c.disagreedSeconds = 0
		return
	}
	if c.disagreedSeconds++; c.disagreedSeconds == 3 {
		c.w.Log.Break(rulePriority, "for 2 s the priority policy has been %v with a different picker than A56's model, which is %s with that of %q (priorities: %s; children: %s)",
			c.state, want.State, child, strings.Join(c.priorities, ", "), c.states())
	}
}

// recordCoincidence must be called with the lock held.
func (c *channel) recordCoincidence() {
	if c.lastFailover.Equal(c.updatedAt) {
		c.coincidedAt = c.updatedAt
	}
}

// mayDifferByOrder reports whether the policy and the model could differ just because they've
// handled simultaneous events in a different order. The caller holds the lock.
func (c *channel) mayDifferByOrder() bool {
	// With standbys or near groups, an update may coincide with a failover. The model then creates
	// a standby immediately. The policy waits until it has handled all simultaneous events. By
	// then, the standby may not be needed anymore, or the policy may create a child that the model
	// doesn't. The two then have different failover timers.
	s := c.w.settings
	return s.warmStandby > 0 && time.Since(c.coincidedAt) <= time.Duration(len(c.priorities))*s.failoverTimeout
}

func (c *channel) states() string {
	var all []string
	for _, name := range c.priorities {
		if child := c.children[name]; child != nil {
			all = append(all, name+" "+child.state.String()+" for "+time.Since(child.changedAt).String())
		} else {
			all = append(all, name+" without a report")
		}
	}
	return strings.Join(all, ", ")
}

// checkFailover checks that calls don't leave a READY child for a lower one, for one without
// endpoints, or for a higher one that's still connecting. Only an update, or gRFC A56 itself, may
// cause that.
func (c *channel) checkFailover(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failovers.Add(1)
	c.lastFailover = time.Now()
	c.recordCoincidence()
	if c.settled {
		c.w.Log.Break(ruleFailover, "from %q to %q, without an event since the last quiet period", from, to)
		c.settled = false
	}
	fromIndex, toIndex := c.priorityIndex(from), c.priorityIndex(to)
	if fromIndex < 0 || toIndex < 0 {
		return
	}
	leaving := c.children[c.priorities[fromIndex]]
	if leaving == nil || leaving.state != connectivity.Ready || leaving.reportedNow() {
		return
	}
	if entered := c.children[c.priorities[toIndex]]; toIndex < fromIndex && entered != nil && entered.state == connectivity.Connecting && time.Since(c.updatedAt) > 0 {
		c.w.Log.Break(ruleFailover, "from %q, which is READY, up to %q, which is CONNECTING", from, to)
	}
	if fromIndex < toIndex {
		c.w.Log.Break(ruleFailover, "down from %q to %q, though %q is READY", from, to, from)
	}
	if toIndex < len(c.truth) && len(c.truth[toIndex].Serving()) == 0 {
		c.w.Log.Break(ruleFailover, "from %q, which is READY, up to %q, which has no endpoints", from, to)
	}
}

// priorityIndex must be called with the lock held.
func (c *channel) priorityIndex(name string) int {
	index, title, _ := strings.Cut(strings.TrimPrefix(name, "p"), " ")
	if children, problem := c.childrenNamed(index, title); problem == "" {
		return slices.Index(c.priorities, children[0])
	}
	return -1
}

func (c *channel) setSettled(settled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = settled
}
