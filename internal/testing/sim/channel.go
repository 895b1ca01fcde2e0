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

// channel is what the world knows of one channel: the reports of its policies, and the model of
// gRFC A56, which gets each report before the policy does.
type channel struct {
	w  *World
	id int

	order sync.Mutex // held while a report is handled

	mu         sync.Mutex
	begin      time.Time // when the clock of the model was last set
	told       tree      // the last update
	toldBefore tree      // the update before that
	model      *prioritymodel.Model
	children   map[string]*seen
	state      connectivity.State // the last published state
	picker     balancer.Picker    // the last published picker
	disagreed  int                // for how many seconds in a row the model and the policy have disagreed
	priorities []string           // in the last update
	before     []string           // in the update before that
	lastUpdate time.Time
	inUpdate   bool
	said       []prioritymodel.Report          // reports of children that the model creates next
	unheard    map[string]prioritymodel.Report // last reports of children that the model has not created yet
	truth      Truth                           // of the last update
	detects    bool                            // the channel detects outliers, or has done so
	failovers  int                             // as the metrics count them
	lastMove   time.Time                       // when the last failover was
	met        time.Time                       // when an update coincided with a failover, or with a child that the policy created earlier than the model
	settled    bool                            // since the last quiet period, nothing has happened to the priorities
}

// seen is the last report of a child of the priority policy.
type seen struct {
	state  connectivity.State
	picker balancer.Picker
	tier   shell.Tier // what the child reports about its endpoints
	since  time.Time  // when the state last changed
	told   time.Time  // when the last report came
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

// updating is called before the priority policy is updated. What children report until updated
// belongs to the update, as in gRFC A56.
func (c *channel) updating() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.before, c.priorities, c.lastUpdate = c.priorities, c.told.priorities, time.Now()
	c.meet()
	c.model.BeginUpdate(c.w.settings.model(c.told, c.truth))
	c.inUpdate = true
}

// updated is called after the priority policy was updated. What children report that the update has
// created comes after the choice that created them.
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

// report passes the report of a child on to the model. If the model has no such child, it gets the
// report when it creates one: when an update coincides with a timer or a report, the policy may
// create a child earlier than the model. The caller holds the lock.
func (c *channel) report(r prioritymodel.Report) {
	if c.model.Updating(r.Text) == nil {
		if c.unheard[r.Text] = r; time.Since(c.lastUpdate) == 0 {
			c.met = c.lastUpdate
		}
		return
	}
	c.model.Report(r.Text, r.Text, r)
}

// react returns the report that a child has made before the model created it.
func (c *channel) react(child string) (reaction prioritymodel.Reaction) {
	if r, ok := c.unheard[child]; ok {
		reaction.Reports = append(reaction.Reports, r)
		delete(c.unheard, child)
	}
	return reaction
}

// decided counts the row of docs/tiers.md by which the model chose a priority.
func (c *channel) decided(row int) {
	if c.w.settings.modelled(c.detects) {
		c.w.mark(rowMark(row))
	}
}

// closed is called when a child is closed. If the channel is open and the child is configured, the
// child must have been deactivated for long enough.
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
	is.told = time.Now()
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

// uses reports whether the published picker may be that of the child. Pickers that make calls wait
// cannot be told apart.
func (c *channel) uses(child *seen) bool {
	p := c.picker
	return p != nil && reflect.TypeOf(p) == reflect.TypeOf(child.picker) && reflect.TypeOf(p).Comparable() && p == child.picker
}

// check compares the priority policy with the model, once a second. It ignores what has just
// changed, because the two may handle simultaneous events in a different order.
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

// meet records that another priority came into use during an update. The caller holds the lock.
func (c *channel) meet() {
	if c.lastMove.Equal(c.lastUpdate) {
		c.met = c.lastUpdate
	}
}

// atOnce reports whether the order of simultaneous events during an update may still matter. The
// caller holds the lock.
//
// With standbys, or with near groups that start early, the order matters if another priority came
// into use at that time, or if the policy has created a child that the model has not. The model
// creates a standby at once. The policy creates it after all simultaneous events, when it may no
// longer be needed. Conversely, the policy may create a child below a failing one that begins to
// connect at the same time. Their failover timers then differ, even after another update.
//
// With a failback delay, the order matters while the delay lasts if two children changed at the
// same time: during an update, the policy first handles the reports of the child that is being
// updated.
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

// failover is called for each failover that the metrics count. Apart from updates and from gRFC
// A56's own choice, calls must not go down from a READY child, to a child without endpoints while
// the previous one stays READY, or up to a child that is not connected.
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

// decidedByA56 reports whether row 1 of docs/tiers.md applies although the child in use is READY:
// its calls fail, and no priority down to the entered one is poor. gRFC A56 waits for a priority
// that has time left to connect. The caller holds the lock.
func (c *channel) decidedByA56(entered int, left *seen) bool {
	return left.tier.Condition != shell.Usable && !slices.ContainsFunc(c.priorities[:entered+1], func(name string) bool {
		child := c.children[name]
		return child != nil && child.state == connectivity.Ready && child.poor(c.w.settings)
	})
}

// counted returns the index of a priority such as "p1 title", or -1 if there is no such priority
// any more. The caller holds the lock.
func (c *channel) counted(name string) int {
	index, title, _ := strings.Cut(strings.TrimPrefix(name, "p"), " ")
	if children, wrong := c.named(index, title); wrong == "" {
		return slices.Index(c.priorities, children[0])
	}
	return -1
}

// settle records whether the world is in a quiet period.
func (c *channel) settle(settled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = settled
}
