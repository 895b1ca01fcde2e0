package rehearse

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/core/pickfirst"
	core "github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/core/share"
	"github.com/understudy-lb/understudy/internal/core/weightedroundrobin"
	"github.com/understudy-lb/understudy/internal/lb/edf"

	coreedf "github.com/understudy-lb/understudy/internal/core/edf"
)

// child is what is below a priority: outlier detection, and round robin over its endpoints.
type child struct {
	channel   *channel
	name      string
	number    int
	outliers  *outlierdetection.Core[*endpoint]
	wrr       *weightedroundrobin.Core[*endpoint]
	reported  weightedroundrobin.State
	endpoints []*endpoint
	ready     []*endpoint
	scheduler *edf.Scheduler
	closed    bool
}

func (c *channel) newChild(name string) *child {
	m := c.model
	ch := &child{channel: c, name: name, wrr: weightedroundrobin.New[*endpoint](), reported: weightedroundrobin.Connecting}
	ch.number = slices.Index(c.names, name)
	ch.outliers = outlierdetection.New[*endpoint](func() uint32 { return m.random.Uint32N(100) })
	servers := m.servers[ch.number]
	ch.wrr.Begin(weightedroundrobin.Config{StartRandom: true}, len(servers))
	var entries []*outlierdetection.Endpoint[*endpoint]
	for i, s := range servers {
		e := &endpoint{child: ch, server: s, outlier: &outlierdetection.Endpoint[*endpoint]{}}
		key := weightedroundrobin.KeyOf([]weightedroundrobin.Address{{Addr: name + "/" + strconv.Itoa(i)}})
		e.robin, _ = ch.wrr.Endpoint(key, s.Weight)
		e.robin.Attached, e.outlier.Attached = e, e
		e.leaf.SetHealth(true)
		ch.endpoints, entries = append(ch.endpoints, e), append(entries, e.outlier)
	}
	ch.wrr.Endpoints()
	ch.wrr.End()
	ejection := m.world.Policy.Ejection
	ejection.BelowOverflow = m.world.Policy.Overflow
	ch.outliers.Update(ejection, entries, at(m.now))
	ch.scheduleSweep()
	return ch
}

// at is a moment of a run as the cores see it.
func at(now time.Duration) time.Time { return time.Unix(1, 0).Add(now) }

// connect is the first update of the child: all endpoints connect.
func (ch *child) connect() {
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

// showEjections tells the endpoints of ejections that have begun or ended.
func (ch *child) showEjections() {
	outcome := ch.outliers.Take()
	for _, e := range outcome.States {
		e.Attached.period++
	}
	for _, change := range outcome.Changes {
		change.Endpoint.Attached.reportHealth()
	}
}

// endpointReported is called when an endpoint has reported its state.
func (ch *child) endpointReported(e *endpoint, state weightedroundrobin.State) {
	m := ch.channel.model
	if ch.wrr.Reported(e.robin, state, at(m.now)) {
		m.after(0, func() {
			if !ch.closed {
				e.apply(e.leaf.ExitIdle())
			}
		})
	}
	if _, due := ch.wrr.Due(); !due {
		return
	}
	published := ch.wrr.Publish(at(m.now))
	ch.rebuild()
	if published == weightedroundrobin.TransientFailure {
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
	ch.channel.handle(ch.channel.core.Reported(ch.name, stateOf(published)))
}

func stateOf(s weightedroundrobin.State) core.State {
	return map[weightedroundrobin.State]core.State{
		weightedroundrobin.Ready: core.Ready, weightedroundrobin.Connecting: core.Connecting,
		weightedroundrobin.Idle: core.Idle, weightedroundrobin.TransientFailure: core.TransientFailure,
	}[s]
}

// rebuild makes a new sequence of picks.
func (ch *child) rebuild() {
	m := ch.channel.model
	ready, weights := ch.wrr.Ready(at(m.now))
	ch.ready, ch.scheduler = nil, nil
	entries := make([]edf.Entry, len(ready))
	for i, e := range ready {
		ch.ready = append(ch.ready, e.Attached)
		entries[i] = edf.Entry{Weight: weights[i], Left: coreedf.RandomLeft(m.random.Uint64N)}
	}
	if len(entries) > 0 {
		ch.scheduler = edf.New(entries)
	}
}

// pick returns the endpoint that the next call goes to, or nil.
func (ch *child) pick() *endpoint {
	if ch.scheduler == nil {
		return nil
	}
	if e := ch.ready[ch.scheduler.Next()]; e.connected {
		return e
	}
	return nil
}

// endpoint is one endpoint of a channel: its pick_first with a subchannel, and its entry in outlier
// detection.
type endpoint struct {
	share.Endpoint
	child     *child
	server    *server
	leaf      pickfirst.Core
	robin     *weightedroundrobin.Child[*endpoint]
	outlier   *outlierdetection.Endpoint[*endpoint]
	connected bool
	run       uint64 // number of the subchannel and of its attempt: later events of earlier ones say nothing
	attempts  int    // that failed in a row

	successes, failures uint64
	row                 int    // of failures
	period              uint64 // grows with each first failure of a row, and with each change of the outlier's state
	rowSince            uint64
}

var (
	errRefused = errors.New("connection refused")
	errTimeout = errors.New("connection timed out")
)

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
		case pickfirst.AwaitCalls:
			m.after(0, func() { e.apply(e.leaf.CallsEnded(0, true)) })
		case pickfirst.WatchHealth:
			m.after(roundTrip, e.reportHealth)
		case pickfirst.Publish:
			e.child.endpointReported(e, [...]weightedroundrobin.State{
				pickfirst.Idle: weightedroundrobin.Idle, pickfirst.Connecting: weightedroundrobin.Connecting,
				pickfirst.Ready: weightedroundrobin.Ready, pickfirst.TransientFailure: weightedroundrobin.TransientFailure,
			}[a.State])
		}
	}
}

// dial makes an attempt to connect: two round trips, or one until it is refused.
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
		m.after(roundTrip, fail(errRefused))
		return
	case e.server.has(Unreachable):
		m.after(connectTimeout, fail(errTimeout))
		return
	}
	m.after(2*roundTrip+time.Duration(m.random.Int64N(int64(roundTrip))), func() {
		switch {
		case e.run != run:
		case !e.server.accepts():
			fail(errRefused)()
		default:
			e.connected, e.attempts = true, 0
			e.server.connections = append(e.server.connections, e)
			e.noteConnection(outlierdetection.Connected)
			e.report(pickfirst.Ready, nil)
		}
	})
}

// backOff is gRPC's: 1 s, times 1.6 for each further failure, a fifth more or less.
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

// disconnected is called when the server has closed the connection.
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

// ticket is the period in which a call began.
type ticket struct{ period uint64 }

func (e *endpoint) begin() ticket { return ticket{e.period} }

// ended counts the end of a call as policy/outlierdetection does.
func (e *endpoint) ended(t ticket, result share.Result, blame share.Blame) {
	if e.child.closed || e.child.outliers.NoOp() || blame == share.FullNow {
		return
	}
	now := at(e.child.channel.model.now)
	failed := blame == share.Late || result == share.Expired || result == share.Unavailable || result == share.Failed
	if result == share.Refused && !e.child.channel.model.world.Policy.Overflow {
		failed = true
	}
	if !failed {
		if e.successes++; t.period >= e.rowSince {
			e.row = 0
		}
		if e.outlier.State() != outlierdetection.InService && t.period == e.period {
			e.child.outliers.Answered(e.outlier)
			e.child.showEjections()
		}
		return
	}
	e.failures++
	e.row++
	switch {
	case e.row >= e.child.channel.model.world.Policy.Failures && e.child.channel.model.world.Policy.Failures > 0:
		e.row = 0
		e.child.outliers.Failed(e.outlier, now)
	case e.outlier.State() == outlierdetection.Returned && t.period == e.period:
		e.child.outliers.Failed(e.outlier, now)
	case e.row == 1:
		e.period++
		e.rowSince = e.period
	}
	e.child.showEjections()
}
