package rehearse

import (
	"math"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/core/pickfirst"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/core/weightedtarget"
	"github.com/understudy-lb/understudy/internal/lb/edf"

	coreedf "github.com/understudy-lb/understudy/internal/core/edf"
)

// A child is everything below a priority: outlier detection and the localities.
type child struct {
	channel    *channel
	name       string
	number     int
	outliers   *outlierdetection.Core[*endpoint]
	target     weightedtarget.Core
	localities map[string]*locality
	endpoints  []*endpoint
	reported   weightedtarget.State
	ready      []*locality
	scheduler  *edf.Scheduler
	updated    bool
	closed     bool
	resets     bool
	resetRun   uint64
}

type locality struct {
	child     *child
	name      string
	weight    uint32
	wrr       *weightedroundrobin.Core[*endpoint]
	ready     []*endpoint
	scheduler *edf.Scheduler
	waits     bool // publishes with a delay because there are many endpoints
}

func (c *channel) newChild(name string) *child {
	m := c.model
	ch := &child{channel: c, name: name, number: slices.Index(c.names, name), localities: make(map[string]*locality), reported: weightedtarget.Connecting}
	ch.outliers = outlierdetection.New[*endpoint](func() uint32 { return m.random.Uint32N(100) })
	var entries []*outlierdetection.Endpoint[*endpoint]
	var names []string
	for i, s := range m.subset(m.servers[ch.number]) {
		l := ch.localities[s.Locality]
		if l == nil {
			l = &locality{child: ch, name: s.Locality, weight: s.LocalityWeight, wrr: weightedroundrobin.New[*endpoint]()}
			l.wrr.Begin(weightedroundrobin.Config{StartRandom: true}, 0)
			ch.localities[s.Locality], names = l, append(names, s.Locality)
		}
		e := &endpoint{locality: l, child: ch, server: s, outlier: &outlierdetection.Endpoint[*endpoint]{}}
		e.robin, _ = l.wrr.Endpoint(weightedroundrobin.KeyOf([]weightedroundrobin.Address{{Addr: strconv.Itoa(i)}}), s.Weight)
		e.robin.Attached, e.outlier.Attached = e, e
		e.leaf.SetHealth(true)
		ch.endpoints, entries = append(ch.endpoints, e), append(entries, e.outlier)
	}
	for _, l := range ch.localities {
		l.wrr.Endpoints()
		l.wrr.End()
	}
	ch.target.Update(names, 0)
	ejection := m.world.Policy.Ejection
	ejection.BelowOverflow = m.world.Policy.Overflow
	ch.outliers.Update(ejection, entries, at(m.now))
	ch.scheduleSweep()
	return ch
}

func (m *model) subset(servers []*server) []*server {
	if m.world.Subset == 0 || m.world.Subset >= len(servers) {
		return servers
	}
	chosen := m.random.Perm(len(servers))[:m.world.Subset]
	slices.Sort(chosen)
	var list []*server
	for _, i := range chosen {
		list = append(list, servers[i])
	}
	return list
}

func at(now time.Duration) time.Time { return time.Unix(1, 0).Add(now) }

// connect connects all endpoints when the first update arrives.
func (ch *child) connect() {
	if ch.updated {
		return
	}
	ch.updated = true
	if len(ch.endpoints) == 0 {
		ch.reported = weightedtarget.TransientFailure
		ch.channel.handle(ch.channel.core.Reported(ch.name, core.TransientFailure))
	}
	for _, e := range ch.endpoints {
		_, actions := e.leaf.Update([]int{-1})
		e.apply(actions)
	}
}

func (ch *child) exitIdle() {
	for _, e := range ch.endpoints {
		e.apply(e.leaf.ExitIdle())
	}
}

func (ch *child) resetBackoff(atLeast time.Duration) {
	for _, e := range ch.endpoints {
		e.apply(e.leaf.ResetBackoff(ch.channel.model.now, atLeast))
	}
}

func (ch *child) close() {
	ch.closed = true
	for _, e := range ch.endpoints {
		e.drop()
	}
}

func (ch *child) scheduleSweep() {
	next, ok := ch.outliers.Next()
	if !ok {
		return
	}
	m := ch.channel.model
	m.at(next.Sub(at(0)), func() {
		if ch.closed {
			return
		}
		for _, e := range ch.endpoints {
			e.outlier.Successes, e.outlier.Failures = e.successes, e.failures
			e.successes, e.failures = 0, 0
			if e.outlier.Ejected() {
				e.row = 0
			}
		}
		ch.outliers.Sweep(at(m.now))
		ch.showEjections()
		ch.scheduleSweep()
	})
}

func (ch *child) showEjections() {
	outcome := ch.outliers.Take()
	for _, entry := range outcome.States {
		e := entry.Attached
		switch entry.State() {
		case outlierdetection.InService:
			e.ejection = 0
		case outlierdetection.Ejected:
			e.ejection = e.period + 1
		case outlierdetection.Returned:
		}
		e.period++
	}
	for _, change := range outcome.Changes {
		change.Endpoint.Attached.reportHealth()
	}
}

func (l *locality) report(e *endpoint, state weightedroundrobin.State) {
	m := l.child.channel.model
	if l.wrr.Reported(e.robin, state, at(m.now)) {
		m.after(0, func() {
			if !l.child.closed {
				e.apply(e.leaf.ExitIdle())
			}
		})
	}
	l.publish()
}

func (l *locality) publish() {
	m := l.child.channel.model
	when, due := l.wrr.Due()
	if !due {
		return
	}
	if wait := when.Sub(at(m.now)); wait > 0 {
		if !l.waits {
			l.waits = true
			m.after(wait, func() {
				if l.waits = false; !l.child.closed {
					l.publish()
				}
			})
		}
		return
	}
	published := l.wrr.Publish(at(m.now))
	if m.hasCalls() {
		l.setReady()
	}
	l.child.report(l, published)
}

func (l *locality) setReady() {
	m := l.child.channel.model
	ready, weights := l.wrr.Ready(at(m.now))
	l.ready = nil
	for _, e := range ready {
		l.ready = append(l.ready, e.Attached)
	}
	l.scheduler = m.schedule(weights)
}

func (ch *child) report(l *locality, state weightedroundrobin.State) {
	m := ch.channel.model
	ch.target.Report(l.name, weightedtarget.State(state))
	if !ch.target.Stale() {
		m.after(0, ch.channel.pickAgain)
		return
	}
	published := ch.target.Publish()
	if m.hasCalls() {
		ch.setReady(published)
	}
	if published == weightedtarget.TransientFailure {
		m.after(0, func() {
			ch.outliers.AllConnectsFailed()
			ch.showEjections()
		})
	}
	if ch.reported == published {
		m.after(0, ch.channel.pickAgain)
		return
	}
	ch.reported = published
	ch.channel.handle(ch.channel.core.Reported(ch.name, stateOf[published]))
}

func (ch *child) setReady(published weightedtarget.State) {
	ch.ready = nil
	var weights []uint32
	if published == weightedtarget.Ready {
		for _, name := range ch.target.In(published) {
			ch.ready, weights = append(ch.ready, ch.localities[name]), append(weights, ch.localities[name].weight)
		}
	}
	ch.scheduler = ch.channel.model.schedule(weights)
}

var stateOf = [...]core.State{
	weightedtarget.Ready: core.Ready, weightedtarget.Connecting: core.Connecting,
	weightedtarget.Idle: core.Idle, weightedtarget.TransientFailure: core.TransientFailure,
}

func (m *model) schedule(weights []uint32) *edf.Scheduler {
	if len(weights) == 0 {
		return nil
	}
	entries := make([]edf.Entry, len(weights))
	for i, weight := range weights {
		if entries[i].Weight = weight; len(weights) > 1 {
			entries[i].Left = coreedf.RandomLeft(m.random.Uint64N)
		}
	}
	return edf.New(entries)
}

func (ch *child) pick() *endpoint {
	if ch.scheduler == nil {
		return nil
	}
	l := ch.ready[ch.scheduler.Next()]
	if l.scheduler == nil {
		return nil
	}
	if e := l.ready[l.scheduler.Next()]; e.connected {
		return e
	}
	return nil
}

// An endpoint has a pick_first with a subchannel, and an entry in outlier detection.
type endpoint struct {
	share.Endpoint
	locality  *locality
	child     *child
	server    *server
	leaf      pickfirst.Core
	robin     *weightedroundrobin.Child[*endpoint]
	outlier   *outlierdetection.Endpoint[*endpoint]
	connected bool
	run       uint64 // number of the current connection attempt; we ignore events of earlier ones
	attempts  int

	successes, failures uint64
	row                 int
	period              uint64 // incremented when a row of failures begins or the outlier's state changes
	rowSince            uint64
	lost                uint64
	ejection            uint64 // the period that began with the last ejection; 0 in the state InService
}

func (e *endpoint) apply(actions []pickfirst.Action) {
	m := e.child.channel.model
	for _, a := range actions {
		switch a.Kind {
		case pickfirst.Connect:
			e.dial()
		case pickfirst.Renew:
			e.attempts = 0
			e.dial()
		case pickfirst.Shutdown:
			e.drop()
		case pickfirst.StartTimer:
			run := e.run
			m.after(pickfirst.AttemptDelay, func() {
				if e.run == run {
					e.apply(e.leaf.TimerFired())
				}
			})
		case pickfirst.Backoff:
			e.backOff(a.Count)
		case pickfirst.AwaitCalls: // we don't count calls here; any server that was called has answered
			m.after(0, func() { e.apply(e.leaf.CallsEnded(0, true)) })
		case pickfirst.WatchHealth:
			m.after(roundTrip, e.reportHealth)
		case pickfirst.Publish:
			e.locality.report(e, [...]weightedroundrobin.State{
				pickfirst.Idle: weightedroundrobin.Idle, pickfirst.Connecting: weightedroundrobin.Connecting,
				pickfirst.Ready: weightedroundrobin.Ready, pickfirst.TransientFailure: weightedroundrobin.TransientFailure,
			}[a.State])
		}
	}
}

// dial tries to connect. That takes two round trips, or just one if the connection is refused.
func (e *endpoint) dial() {
	m := e.child.channel.model
	e.run++
	run := e.run
	m.after(0, func() {
		if e.run == run {
			e.report(pickfirst.Connecting, nil)
		}
	})
	fail := func(err error) func() {
		return func() {
			if e.run == run {
				e.noteConnection(outlierdetection.Broken)
				e.report(pickfirst.TransientFailure, err)
				e.attempts++
				e.backOff(e.attempts - 1)
			}
		}
	}
	switch {
	case !e.server.accepts():
		m.after(roundTrip, fail(syscall.ECONNREFUSED))
		return
	case e.server.unreachableFor(e.child.channel):
		m.after(connectTimeout, fail(syscall.ETIMEDOUT))
		return
	}
	m.after(2*roundTrip+time.Duration(m.random.Int64N(int64(roundTrip))), func() {
		switch {
		case e.run != run:
		case !e.server.accepts():
			fail(syscall.ECONNREFUSED)()
		default:
			e.connected, e.attempts = true, 0
			e.server.connections = append(e.server.connections, e)
			e.noteConnection(outlierdetection.Connected)
			e.report(pickfirst.Ready, nil)
		}
	})
}

// backOff works like gRPC's backoff, which starts at 1 s and grows by a factor of 1.6 with each
// failure, plus or minus a fifth.
func (e *endpoint) backOff(failures int) {
	m := e.child.channel.model
	longest := m.world.Policy.MaxConnectBackoff
	if longest == 0 {
		longest = 120 * time.Second
	}
	d := min(float64(longest), float64(time.Second)*math.Pow(1.6, float64(failures)))
	run := e.run
	m.after(time.Duration(d*(0.8+0.4*m.random.Float64())), func() {
		if e.run == run {
			e.noteConnection(outlierdetection.Connecting)
			e.report(pickfirst.Idle, nil)
		}
	})
}

func (e *endpoint) report(s pickfirst.State, err error) {
	if !e.child.closed {
		e.apply(e.leaf.Report(e.child.channel.model.now, 0, s, err))
	}
}

func (e *endpoint) disconnected() {
	if !e.connected {
		return
	}
	e.connected = false
	e.run++
	e.child.channel.intakes[e.child.number].Forget(&e.Endpoint)
	e.noteConnection(outlierdetection.Connecting)
	e.report(pickfirst.Idle, nil)
}

func (e *endpoint) drop() {
	e.run++
	e.connected = false
}

func (e *endpoint) noteConnection(c outlierdetection.Connection) {
	e.child.outliers.Connection(e.outlier, c)
	e.child.showEjections()
}

func (e *endpoint) reportHealth() {
	if e.child.closed || !e.connected {
		return
	}
	state := pickfirst.Ready
	if e.outlier.VisiblyEjected() {
		state = pickfirst.TransientFailure
	}
	e.apply(e.leaf.Health(0, state, nil))
}

// A ticket records the endpoint's state when a call begins.
type ticket struct {
	period   uint64
	ejection uint64
	returned bool
}

func (e *endpoint) begin() ticket {
	return ticket{e.period, e.ejection, e.outlier.State() == outlierdetection.Returned}
}

// ended counts calls in the same way as policy/outlierdetection does.
func (e *endpoint) ended(t ticket, result share.Result, blame share.Blame) {
	if e.child.closed || e.child.outliers.NoOp() || blame == share.FullNow {
		return
	}
	now := at(e.child.channel.model.now)
	failed := blame == share.Late || result == share.Expired || result == share.Unavailable || result == share.Lost || result == share.Failed
	if result == share.Refused && !e.child.channel.model.world.Policy.Overflow {
		failed = true
	}
	if !failed {
		if e.successes++; t.period >= e.rowSince {
			e.row = 0
		}
		if t.ejection != 0 && t.ejection == e.ejection {
			e.child.outliers.Answered(e.outlier)
			e.child.showEjections()
		}
		return
	}
	e.failures++
	consecutive := e.child.channel.model.world.Policy.Ejection.ConsecutiveFailuresEjection
	if consecutive == nil || result == share.Lost && t.period < e.lost {
		return
	}
	if result == share.Lost {
		e.period++
		e.lost = e.period
	}
	if e.row++; e.row >= int(consecutive.Failures) {
		e.row = 0
		e.child.outliers.Failed(e.outlier, now)
	} else {
		if e.row == 1 {
			e.period++
			e.rowSince = e.period
		}
		if t.returned && t.ejection == e.ejection {
			e.child.outliers.Failed(e.outlier, now)
		}
	}
	e.child.showEjections()
}
