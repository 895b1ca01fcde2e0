package differential

import (
	"fmt"
	"slices"
	"strings"
)

// modelStub is a stub as the models have it.
type modelStub struct {
	id                         string
	version, exitIdles, errors int
	closed                     bool
	state, pick                string // as handled
	said, saidPick             string // last reported, handled or not
}

// modelPolicy is the policy of a child, with the next one in a graceful switch.
type modelPolicy struct{ current, pending *modelStub }

func (p *modelPolicy) latest() *modelStub {
	if p.pending != nil {
		return p.pending
	}
	return p.current
}

// switchTo gives the child a policy of another type, or its first.
func (p *modelPolicy) switchTo(s *modelStub) {
	if p.current == nil {
		p.current = s
		return
	}
	if p.pending != nil {
		p.pending.closed = true
	}
	p.pending = s
}

// reported handles a report, and returns whether it is the child's.
func (p *modelPolicy) reported(s *modelStub, state, pick string) bool {
	s.state, s.pick = state, pick
	if p.pending != nil && (s == p.current && state != ready ||
		s == p.pending && (state != connecting || p.current.state != ready)) {
		p.current.closed = true
		p.current, p.pending = p.pending, nil
		return true
	}
	return s == p.current
}

// rejected notes that the latest policy rejected its update. One that is not in use
// yet counts as failed should it take over before it reports.
func (p *modelPolicy) rejected() {
	if p.pending != nil {
		p.pending.state, p.pending.pick = failed, "fail: no good"
	}
}

func (p *modelPolicy) close() {
	for _, s := range []*modelStub{p.current, p.pending} {
		if s != nil {
			s.closed = true
		}
	}
	p.current, p.pending = nil, nil
}

// modelStubs are all stubs of a model, in the order in which they were built.
type modelStubs []*modelStub

func (all *modelStubs) build(id string) *modelStub {
	s := &modelStub{id: id, state: connecting, pick: "queue"}
	*all = append(*all, s)
	return s
}

// find returns the newest that is not closed, or nil.
func (all modelStubs) find(id string) *modelStub {
	for _, s := range slices.Backward(all) {
		if s.id == id && !s.closed {
			return s
		}
	}
	return nil
}

func (all modelStubs) told() string {
	var told []string
	for _, s := range all {
		if !s.closed {
			told = append(told, fmt.Sprintf("%s(%d,%d,%d)", s.id, s.version, s.exitIdles, s.errors))
		}
	}
	slices.Sort(told)
	return strings.Join(told, " ")
}

// pickOf is what a pick of a stub in a state answers.
func pickOf(id, state string) string {
	return map[string]string{
		ready: id, idle: "fail: " + id + " idle", connecting: "queue", failed: "fail: " + id + " refused",
	}[state]
}

func nameOf(id string) string {
	name, _, _ := strings.Cut(id, ":")
	return name
}
