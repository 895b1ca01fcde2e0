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

// channel is what the world knows of one channel: what its policies say, and what A56's
// model makes of that. The model is told of each report before the policy is.
type channel struct {
	w  *World
	id int

	order sync.Mutex // of reports

	mu         sync.Mutex
	begin      time.Time // of the model's clock
	told       tree      // last
	toldBefore tree      // before that
	model      *prioritymodel.Model
	children   map[string]*seen
	state      connectivity.State // published last
	picker     balancer.Picker    // likewise
	disagreed  int                // for how many seconds the model and the policy have disagreed
	priorities []string           // of the last update
	before     []string           // of the one before
	lastUpdate time.Time          // when the last one was
	inUpdate   bool
	said       []prioritymodel.Report // by children that the model is about to make
	truth      Truth                  // told last
	detects    bool                   // it was told to detect outliers, now or before
	failovers  int                    // counted
	lastMove   time.Time              // when the last of them was
	met        time.Time              // when one of them was at the moment of an update
	settled    bool                   // nothing that concerns priorities has happened since a quiet time
}

// seen is what a child of priority said last.
type seen struct {
	state  connectivity.State
	picker balancer.Picker
	tier   shell.Tier // what it said of its endpoints
	since  time.Time  // of the state
	told   time.Time  // when it last reported
}

var lastID atomic.Int64

func newChannel(w *World) *channel {
	c := &channel{w: w, id: int(lastID.Add(1)), begin: time.Now(), model: prioritymodel.New(nil), children: make(map[string]*seen)}
	channels.Store(c.id, c)
	return c
}

func (c *channel) forget() { channels.Delete(c.id) }

// advance lets the model's clock catch up.
func (c *channel) advance() {
	now := time.Since(c.begin)
	c.begin = time.Now()
	c.model.Advance(now)
}

// updating is told that priority is about to be updated with what the channel was told. What
// the children report until updated is part of the update, as A56 has it.
func (c *channel) updating() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.before, c.priorities, c.lastUpdate = c.priorities, c.told.priorities, time.Now()
	c.meet()
	c.model.BeginUpdate(c.w.settings.model(c.told, c.truth))
	c.inUpdate = true
}

// updated is told that priority has been updated. What children said that the update made
// comes after the choice that made them.
func (c *channel) updated() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.model.EndUpdate()
	said := c.said
	c.inUpdate, c.said = false, nil
	for _, r := range said {
		c.model.Report(r.Text, r.Text, r)
	}
}

// reported is told of each report of a child of priority.
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
	c.model.Report(child, child, r)
}

// published is told of each report of priority.
func (c *channel) published(s balancer.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.picker = s.ConnectivityState, s.Picker
}

// uses says whether the picker of a child is the one that is published, as far as can be
// told: pickers that queue are all alike.
func (c *channel) uses(child *seen) bool {
	p := c.picker
	return p != nil && reflect.TypeOf(p) == reflect.TypeOf(child.picker) && reflect.TypeOf(p).Comparable() && p == child.picker
}

// check compares priority with the model, once a second. What has just changed is given
// time: the model and the policy may have seen two things of one moment in either order.
func (c *channel) check() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	want := c.model.Last()
	if want.State == "" || !c.w.settings.modelled(c.detects) {
		return
	}
	agree := want.State == c.state.String()
	child := want.Text
	// In TRANSIENT_FAILURE priority has an error of its own, about all of its children, and
	// where others get a few of the calls its picker is one over several.
	if agree && c.children[child] != nil && want.State != prioritymodel.TransientFailure && len(want.Trying) == 0 {
		agree = c.uses(c.children[child])
	}
	if agree || c.atOnce() {
		c.disagreed = 0
		return
	}
	if c.disagreed++; c.disagreed == 3 {
		c.w.Log.Break(rulePriority, "for 2 s priority has been %v with another picker than A56's model, which is %s with that of %q (priorities: %s; children: %s)",
			c.state, want.State, child, strings.Join(c.priorities, ", "), c.states())
	}
}

// meet notes that another priority came into use at the moment of an update. The lock is held.
func (c *channel) meet() {
	if c.lastMove.Equal(c.lastUpdate) {
		c.met = c.lastUpdate
	}
}

// atOnce says whether it may still matter in which order things happened at the moment of an
// update. The lock is held.
//
// With standbys, and near groups that are started early, it does where another priority came into use at that moment: the model makes
// a standby at once, and the policy only after the events of the moment, when it may be
// wanted no more. So the two give the same child its time to connect at different times.
//
// With a failback delay it does where two children changed, for as long as that: in the middle
// of an update the policy first takes in what the child says that it is at, and others later.
func (c *channel) atOnce() bool {
	s, since := c.w.settings, time.Since(c.lastUpdate)
	if (s.standbys > 0 || s.near.prefer != "") && c.met.Equal(c.lastUpdate) && since <= time.Duration(len(c.priorities))*s.failover {
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

// states names the children and what they said last.
func (c *channel) states() string {
	var all []string
	for _, name := range c.priorities {
		if child := c.children[name]; child != nil {
			all = append(all, name+" "+child.state.String()+" for "+time.Since(child.since).String())
		} else {
			all = append(all, name+" silent")
		}
	}
	return strings.Join(all, ", ")
}

// failover is told of each failover that is counted, by what people call the two. None
// goes down from a child that is READY, nor to one that has no endpoints while the one
// before is READY and stays, nor up to one that is not yet connected, unless by an update.
func (c *channel) failover(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failovers++
	c.lastMove = time.Now()
	c.meet()
	if c.settled {
		c.w.Log.Break(ruleFailover, "from %q to %q, though nothing that concerns them has happened since all was quiet", from, to)
		c.settled = false
	}
	was, now := c.counted(from), c.counted(to)
	if was < 0 || now < 0 {
		return
	}
	left := c.children[c.priorities[was]]
	if left == nil || left.state != connectivity.Ready || left.now() {
		return
	}
	if entered := c.children[c.priorities[now]]; now < was && entered != nil && entered.state == connectivity.Connecting && time.Since(c.lastUpdate) > 0 {
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

// counted returns the index of what people call "p1 title", -1 for one that is configured
// no more. The lock is held.
func (c *channel) counted(name string) int {
	index, title, _ := strings.Cut(strings.TrimPrefix(name, "p"), " ")
	if child, wrong := c.named(index, title); wrong == "" {
		return slices.Index(c.priorities, child)
	}
	return -1
}

// settle says that all is quiet, or that it is not any more.
func (c *channel) settle(settled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = settled
}
