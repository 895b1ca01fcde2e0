package prioritymodel

import (
	"fmt"
	"slices"
	"strings"
)

type Stub struct {
	ID                         string
	Version, ExitIdles, Errors int
	Closed                     bool
	Handled                    Report
	LastReport                 Report // the model may not have handled it yet
}

// Policies are the current policy of a child and, during a graceful switch, the pending one that
// will replace it.
type Policies struct{ Current, Pending *Stub }

func (p *Policies) Latest() *Stub {
	if p.Pending != nil {
		return p.Pending
	}
	return p.Current
}

func (p *Policies) SwitchTo(s *Stub) {
	if p.Current == nil {
		p.Current = s
		return
	}
	if p.Pending != nil {
		p.Pending.Closed = true
	}
	p.Pending = s
}

func (p *Policies) Reported(s *Stub, r Report) bool {
	s.Handled = r
	if p.Pending != nil && (s == p.Current && r.State != Ready ||
		s == p.Pending && (r.State != Connecting || p.Current.Handled.State != Ready)) {
		p.Current.Closed = true
		p.Current, p.Pending = p.Pending, nil
		return true
	}
	return s == p.Current
}

// Refused records that the latest policy has refused its update. If that's the pending policy, and
// it takes over before it has reported a state, it counts as failed.
func (p *Policies) Refused(err string) {
	if p.Pending != nil {
		p.Pending.Handled = failedReport(err)
	}
}

func (p *Policies) Close() {
	for _, s := range []*Stub{p.Current, p.Pending} {
		if s != nil {
			s.Closed = true
		}
	}
	p.Current, p.Pending = nil, nil
}

type Stubs []*Stub

func (all *Stubs) Build(id string) *Stub {
	s := &Stub{ID: id, Handled: initialReport}
	*all = append(*all, s)
	return s
}

func (all Stubs) Find(id string) *Stub {
	for _, s := range slices.Backward(all) {
		if s.ID == id && !s.Closed {
			return s
		}
	}
	return nil
}

// Summary lists the open policies, each with the version of its last update and how many ExitIdle
// calls and resolver errors it got.
func (all Stubs) Summary() string {
	var lines []string
	for _, s := range all {
		if !s.Closed {
			lines = append(lines, fmt.Sprintf("%s(%d,%d,%d)", s.ID, s.Version, s.ExitIdles, s.Errors))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}
