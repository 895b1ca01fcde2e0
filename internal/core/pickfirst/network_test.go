package pickfirst_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
)

type event struct {
	op      string
	list    []string
	address string
	outcome core.State
	wait    time.Duration
	call    string
}

func (e event) String() string {
	return fmt.Sprint(e.op, " ", strings.Join(e.list, " "), e.address, e.call, e.outcome, e.wait)
}

func drawEvent(t *rapid.T) event {
	e := event{op: rapid.SampledFrom([]string{"network", "network", "network", "network", "network",
		"update", "advance", "exit-idle", "reset-backoff", "health", "resolver-error"}).Draw(t, "op")}
	address := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	switch e.op {
	case "update":
		e.list = rapid.SliceOfNDistinct(address, 0, 4, rapid.ID).Draw(t, "list")
	case "network":
		e.address = address.Draw(t, "address")
		e.outcome = rapid.SampledFrom([]core.State{core.TransientFailure, core.TransientFailure,
			core.TransientFailure, core.Ready, core.Idle}).Draw(t, "outcome")
	case "health":
		e.address = address.Draw(t, "address")
		e.outcome = rapid.SampledFrom([]core.State{core.Connecting, core.Ready, core.TransientFailure}).Draw(t, "now")
	case "advance":
		e.wait = 50 * time.Millisecond * time.Duration(rapid.IntRange(1, 8).Draw(t, "wait"))
	}
	return e
}

func drawShort(t *rapid.T) event {
	e := event{op: rapid.SampledFrom([]string{"network", "network", "network", "health", "exit-idle", "exit-idle",
		"call", "call", "answer", "lose", "lose", "advance", "reset-backoff"}).Draw(t, "op"), address: "a", outcome: core.Ready}
	switch e.op {
	case "network":
		e.outcome = rapid.SampledFrom([]core.State{core.Ready, core.Ready, core.Ready, core.Idle, core.TransientFailure}).Draw(t, "outcome")
	case "call", "answer", "lose":
		e.call = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "call")
	case "advance":
		e.wait = rapid.SampledFrom([]time.Duration{100, 1000, 3000}).Draw(t, "ms") * time.Millisecond
	}
	return e
}

type network struct {
	*target
	health           bool
	states           map[string]core.State
	connectRequested map[string]bool
	history          []string

	links  map[string]*link // by address
	wires  map[string]*wire // by counted call
	broken error            // a rule about short-lived connections that was broken
}

// link is what the network knows about the connections to an address.
type link struct {
	current    *wire
	lostAt     time.Duration
	lost       bool // and not connected since
	shortLived int  // number of short-lived connections in a row; a backoff makes up for all but one
}

// wire is a connection.
type wire struct {
	link           *link
	connectedAt    time.Duration
	inFlight       int // number of counted calls
	counts         bool
	answered, lost bool
	judged         bool
}

func newNetwork(health bool) *network {
	return &network{target: newTarget(), health: health, states: map[string]core.State{}, connectRequested: map[string]bool{},
		links: map[string]*link{}, wires: map[string]*wire{}}
}

func (n *network) apply(e event) []string {
	line := e.op
	switch e.op {
	case "update":
		line += " " + strings.Join(e.list, " ")
		n.Update(e.list, n.health)
	case "network":
		state, ok := n.nextState(e.address, e.outcome)
		if !ok {
			return nil
		}
		line = "report " + e.address + " " + state.String()
		n.noteReport(e.address, state)
		n.states[e.address], n.connectRequested[e.address] = state, false
		n.Report(e.address, state, fmt.Errorf("%s refused", e.address))
	case "health":
		if n.states[e.address] != core.Ready {
			return nil
		}
		line += " " + e.address + " " + e.outcome.String()
		n.Health(e.address, e.outcome, fmt.Errorf("unwell"))
	case "call":
		line += " " + e.call
		if n.calls[e.call] != nil {
			return nil
		}
		n.Call(e.call)
	case "answer", "lose":
		line += " " + e.call
		n.EndCall(e.call, e.op == "answer")
		n.noteEnd(e.call, e.op == "answer")
	case "advance":
		n.Advance(e.wait)
	case "exit-idle":
		n.ExitIdle()
	case "reset-backoff":
		n.ResetBackoff()
	case "resolver-error":
		n.ResolverError(fmt.Errorf("nxdomain"))
	}
	log := n.Take()
	for _, d := range log {
		verb, address, _ := strings.Cut(d, " ")
		switch verb {
		case "connect":
			n.connectRequested[address] = true
			n.noteConnect(address)
		case "renew":
			delete(n.states, address)
			n.connectRequested[address] = true
			maps.DeleteFunc(n.wires, func(_ string, w *wire) bool { return w.link == n.links[address] })
		case "shutdown":
			delete(n.states, address)
			delete(n.connectRequested, address)
			delete(n.links, address)
		case "sent":
			address, counted := strings.CutSuffix(strings.TrimPrefix(address, "to "), ", and counted")
			n.noteCall(e.call, n.links[address].current, counted)
		}
	}
	lines := append([]string{line}, log...)
	n.history = append(n.history, lines...)
	return lines
}

func (n *network) noteReport(address string, state core.State) {
	l := n.links[address]
	if l == nil {
		l = &link{}
		n.links[address] = l
	}
	switch before := n.states[address]; {
	case state == core.Ready:
		l.current = &wire{link: l, connectedAt: n.now, counts: l.shortLived > 0}
	case state != core.Idle, before == core.TransientFailure:
	case before == core.Connecting:
		l.current = &wire{link: l, connectedAt: n.now}
		fallthrough
	default:
		l.lost, l.lostAt, l.current.lost = true, n.now, true
		if n.now-l.current.connectedAt >= time.Second || l.current.answered {
			l.current.answered, l.current.judged, l.shortLived = true, true, 0
		}
		l.current.judge()
	}
}

// judge is called when a connection has been lost, and at the end of each counted call.
func (w *wire) judge() {
	switch {
	case !w.lost || w.judged || w.inFlight > 0:
	case w.answered:
		w.judged, w.link.shortLived = true, 0
	default:
		w.judged = true
		w.link.shortLived++
	}
}

func (n *network) noteCall(call string, w *wire, counted bool) {
	if w.counts && !w.answered && !counted {
		n.broken = fmt.Errorf("call %s is not counted", call)
	}
	if counted {
		w.inFlight++
		n.wires[call] = w
	}
}

func (n *network) noteEnd(call string, answered bool) {
	w := n.wires[call]
	if w == nil {
		return
	}
	delete(n.wires, call)
	w.inFlight--
	if answered && !w.answered {
		w.answered = true
		if !w.lost {
			w.link.shortLived = 0
		}
	}
	w.judge()
}

// noteConnect checks that a connection that follows two short-lived ones waits for gRPC's shortest
// backoff. If the last of them proved to be short-lived too late for that, it is the one after.
func (n *network) noteConnect(address string) {
	l := n.links[address]
	if l == nil || !l.lost {
		return
	}
	l.lost = false
	switch wait := n.now - l.lostAt; {
	case l.shortLived < 2:
	case wait < 800*time.Millisecond:
		n.broken = fmt.Errorf("%s is connected again %v after its short-lived connections", address, wait)
	default:
		l.shortLived = 1
	}
}

func (n *network) nextState(address string, outcome core.State) (core.State, bool) {
	if !n.subchannels[address] {
		return core.None, false
	}
	switch n.states[address] {
	case core.Connecting:
		return outcome, true
	case core.Ready, core.TransientFailure:
		return core.Idle, true
	}
	return core.Connecting, n.connectRequested[address]
}

func (n *network) published() string {
	for _, line := range slices.Backward(n.history) {
		if state, ok := strings.CutPrefix(line, "publish "); ok {
			return state
		}
	}
	return ""
}
