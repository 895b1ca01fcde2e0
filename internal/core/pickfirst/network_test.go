package pickfirst_test

import (
	"fmt"
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
}

func (e event) String() string {
	return fmt.Sprint(e.op, " ", strings.Join(e.list, " "), e.address, e.outcome, e.wait)
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

type network struct {
	*target
	health           bool
	states           map[string]core.State
	connectRequested map[string]bool
	history          []string

	connectedAt        map[string]time.Duration
	hadShortConnection map[string]bool
	shortConnectionEnd map[string]time.Duration // end of the last connection of each address with several short-lived connections in a row
}

func newNetwork(health bool) *network {
	return &network{target: newTarget(), health: health, states: map[string]core.State{}, connectRequested: map[string]bool{},
		connectedAt: map[string]time.Duration{}, shortConnectionEnd: map[string]time.Duration{}, hadShortConnection: map[string]bool{}}
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
		case "renew":
			delete(n.states, address)
			n.connectRequested[address] = true
		case "shutdown":
			delete(n.states, address)
			delete(n.connectRequested, address)
			delete(n.shortConnectionEnd, address)
			delete(n.hadShortConnection, address)
		}
	}
	lines := append([]string{line}, log...)
	n.history = append(n.history, lines...)
	return lines
}

func (n *network) noteReport(address string, state core.State) {
	before := n.states[address]
	switch {
	case state == core.Ready:
		n.connectedAt[address] = n.now
	case state != core.Idle:
	case before == core.Connecting, before == core.Ready && n.now < n.connectedAt[address]+time.Second:
		if n.hadShortConnection[address] {
			n.shortConnectionEnd[address] = n.now
		}
		n.hadShortConnection[address] = true
	default:
		delete(n.shortConnectionEnd, address)
		if before == core.Ready {
			delete(n.hadShortConnection, address)
		}
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
