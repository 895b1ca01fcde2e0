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

	"github.com/understudy-lb/understudy/internal/shell"
	"github.com/understudy-lb/understudy/internal/testing/prioritymodel"
)

const failing = connectivity.TransientFailure

// channel records the reports of one channel's policies. It passes each report to the model of gRFC
// A56 before the policy gets it.
type channel struct {
	w  *World
	id int

	order sync.Mutex // held while a report is handled

	mu           sync.Mutex
	begin        time.Time // when the model's clock was last advanced
	update       tree      // the last update
	updateBefore tree
	model        *prioritymodel.Model
	children     map[string]*seen
	state        connectivity.State // the last published state
	picker       balancer.Picker
	disagreed    int // seconds since the model and the policy last agreed
	priorities   []string
	before       []string
	lastUpdate   time.Time
	inUpdate     bool
	said         []prioritymodel.Report          // reports of children that the model creates next
	unheard      map[string]prioritymodel.Report // last reports of children that the model has not created yet
	truth        Truth                           // of the last update
	detects      bool                            // the channel detects outliers or once did
	failovers    int
	lastMove     time.Time // the time of the last failover
	met          time.Time // when an update last coincided with a failover or with a child that only the policy had created
	settled      bool      // nothing has changed since the last quiet period
}

type seen struct {
	state      connectivity.State
	picker     balancer.Picker
	tier       shell.Tier // what the child reports about its endpoints
	since      time.Time
	reportedAt time.Time
}

var lastID atomic.Int64

func newChannel(w *World) *channel {
	c := &channel{w: w, id: int(lastID.Add(1)), begin: time.Now(), model: prioritymodel.New(nil),
		children: make(map[string]*seen), unheard: make(map[string]prioritymodel.Report)}
	c.model.React = c.react
	c.model.Decided = c.decided
	channels.Store(c.id, c)
	return c
}

func (c *channel) forget() { channels.Delete(c.id) }

func (c *channel) advance() {
	now := time.Since(c.begin)
	c.begin = time.Now()
	c.model.Advance(now)
}

// updating is called before the priority policy is updated. Reports that arrive before the call of
// updated belong to the update, as in gRFC A56.
func (c *channel) updating() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.before, c.priorities, c.lastUpdate = c.priorities, c.update.priorities, time.Now()
	c.meet()
	c.model.BeginUpdate(c.w.settings.model(c.update, c.truth))
	c.inUpdate = true
}

// updated is called after the priority policy was updated. The model handles the reports of new
// children after the choice that created them.
func (c *channel) updated() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.model.EndUpdate()
	said := c.said
	c.inUpdate, c.said = false, nil
	for _, r := range said {
		c.report(r)
	}
}

// report passes the report of a child on to the model. The policy may create a child earlier than
// the model, because it may handle simultaneous events in another order. The model then gets the
// report when it creates the child. The caller holds the lock.
func (c *channel) report(r prioritymodel.Report) {
	if c.model.Updating(r.Text) == nil {
		if c.unheard[r.Text] = r; time.Since(c.lastUpdate) == 0 {
			c.met = c.lastUpdate
		}
		return
	}
	c.model.Report(r.Text, r.Text, r)
}

// react returns the report that a child made before the model created it.
func (c *channel) react(child string) (reaction prioritymodel.Reaction) {
	if r, ok := c.unheard[child]; ok {
		reaction.Reports = append(reaction.Reports, r)
		delete(c.unheard, child)
	}
	return reaction
}

// decided counts how often each row of the table in docs/tiers.md decides.
func (c *channel) decided(row int) {
	if c.w.settings.modelled(c.detects) {
		c.w.mark(rowMark(row))
	}
}

// closed checks that a configured child is closed only after it was deactivated for long enough.
func (c *channel) closed(child string) {
	open := c.w.isOpen(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	if open && slices.Contains(c.priorities, child) && time.Since(c.lastUpdate) > 0 {
		c.w.mark(markRetention)
	}
	delete(c.unheard, child)
}

func (c *channel) reported(child string, s balancer.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	is := c.children[child]
	if is == nil {
		is = &seen{}
		c.children[child] = is
	}
	if is.since.IsZero() || is.state != s.ConnectivityState {
		is.since = time.Now()
	}
	is.reportedAt = time.Now()
	is.state, is.picker, is.tier = s.ConnectivityState, s.Picker, shell.TierOf(s.Picker)
	r := prioritymodel.Report{State: s.ConnectivityState.String(), Text: child, Missing: 1 - is.tier.ReadyPart, Unproven: is.tier.UnprovenPart}
	if is.tier.Condition != shell.Usable {
		r.Condition = is.tier.Condition.String()
	}
	if s.ConnectivityState == failing {
		r.Err = child
	}
	if c.inUpdate && c.model.Updating(child) == nil {
		c.said = append(c.said, r)
		return
	}
	c.report(r)
}

func (c *channel) published(s balancer.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.picker = s.ConnectivityState, s.Picker
}

// uses reports whether the published picker may be the child's. Pickers that queue calls cannot be
// told apart.
func (c *channel) uses(child *seen) bool {
	p := c.picker
	return p != nil && reflect.TypeOf(p) == reflect.TypeOf(child.picker) && reflect.TypeOf(p).Comparable() && p == child.picker
}

// check compares the priority policy with the model once a second. It ignores the latest changes,
// because the two may handle simultaneous events in a different order.
func (c *channel) check() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.markParts()
	want := c.model.Last()
	if want.State == "" || !c.w.settings.modelled(c.detects) {
		return
	}
	agree := want.State == c.state.String()
	child := want.Text
	// In TRANSIENT_FAILURE, the policy publishes its own error about all children. If some children
	// get trial calls, it publishes its own picker.
	if agree && c.children[child] != nil && want.State != prioritymodel.TransientFailure && len(want.Trying) == 0 {
		agree = c.uses(c.children[child])
	}
	if agree || c.atOnce() {
		c.disagreed = 0
		return
	}
	if c.disagreed++; c.disagreed == 3 {
		c.w.Log.Break(rulePriority, "for 2 s the priority policy has been %v with a different picker than A56's model, which is %s with that of %q (priorities: %s; children: %s)",
			c.state, want.State, child, strings.Join(c.priorities, ", "), c.states())
	}
}

// meet records whether the priority in use changed at the time of the last update. The caller holds
// the lock.
func (c *channel) meet() {
	if c.lastMove.Equal(c.lastUpdate) {
		c.met = c.lastUpdate
	}
}

// atOnce reports whether the order of simultaneous events may explain a difference between the
// policy and the model. The caller holds the lock.
//
// With standbys or near groups, an update may coincide with a failover. The model creates a standby
// at once. The policy creates it after all simultaneous events, when it may no longer be needed.
// The policy may also create a child that the model does not create. Their failover timers then
// differ.
//
// With a failback delay, two children may change at the same time. During an update, the policy
// first handles the reports of the child that is being updated.
func (c *channel) atOnce() bool {
	s, since := c.w.settings, time.Since(c.lastUpdate)
	if (s.standbys > 0 || s.near.prefer != "") && time.Since(c.met) <= time.Duration(len(c.priorities))*s.failover {
		return true
	}
	if s.failback == 0 || since > s.rest() {
		return false
	}
	changed := 0
	for _, name := range c.priorities {
		if child := c.children[name]; child != nil && child.since.Equal(c.lastUpdate) {
			changed++
		}
	}
	return changed > 1
}

func (c *channel) states() string {
	var all []string
	for _, name := range c.priorities {
		if child := c.children[name]; child != nil {
			all = append(all, name+" "+child.state.String()+" for "+time.Since(child.since).String())
		} else {
			all = append(all, name+" without a report")
		}
	}
	return strings.Join(all, ", ")
}

// failover checks a failover that the metrics count. Calls must not leave a READY child for a lower
// one, go to a child without endpoints while the old one is READY, or go up to a child that is not
// connected. Updates and gRFC A56's own choice are exceptions.
func (c *channel) failover(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failovers++
	c.lastMove = time.Now()
	c.meet()
	if c.settled {
		c.w.Log.Break(ruleFailover, "from %q to %q, without an event since the last quiet period", from, to)
		c.settled = false
	}
	was, now := c.counted(from), c.counted(to)
	if was < 0 || now < 0 {
		return
	}
	if now < was {
		c.markBack(c.children[c.priorities[now]])
	}
	left := c.children[c.priorities[was]]
	if left == nil || left.state != connectivity.Ready || left.now() {
		return
	}
	if entered := c.children[c.priorities[now]]; now < was && entered != nil && entered.state == connectivity.Connecting && time.Since(c.lastUpdate) > 0 && !c.decidedByA56(now, left) {
		c.w.Log.Break(ruleFailover, "from %q, which is READY, up to %q, which is CONNECTING", from, to)
	}
	if left.poor(c.w.settings) {
		return
	}
	if was < now {
		c.w.Log.Break(ruleFailover, "down from %q to %q, though %q is READY", from, to, from)
	}
	if now < len(c.truth) && len(c.truth[now].Serving()) == 0 {
		c.w.Log.Break(ruleFailover, "from %q, which is READY, up to %q, which has no endpoints", from, to)
	}
}

// decidedByA56 reports whether gRFC A56's own rule explains that calls leave a READY child. This is
// so if calls to this child fail and no priority down to the entered one is poor. The caller holds
// the lock.
func (c *channel) decidedByA56(entered int, left *seen) bool {
	return left.tier.Condition != shell.Usable && !slices.ContainsFunc(c.priorities[:entered+1], func(name string) bool {
		child := c.children[name]
		return child != nil && child.state == connectivity.Ready && child.poor(c.w.settings)
	})
}

// counted returns the index of a priority such as "p1 title", or -1 if it no longer exists. The
// caller holds the lock.
func (c *channel) counted(name string) int {
	index, title, _ := strings.Cut(strings.TrimPrefix(name, "p"), " ")
	if children, wrong := c.named(index, title); wrong == "" {
		return slices.Index(c.priorities, children[0])
	}
	return -1
}

func (c *channel) settle(settled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = settled
}
