package prioritymodel

import (
	"fmt"
	"slices"
	"strings"
)

// Stub is the policy of a child.
type Stub struct {
	ID                         string
	Version, ExitIdles, Errors int // version of its last configuration; how often it was called
	Closed                     bool
	Now                        Report // the last report that the model has handled
	Said                       Report // the last report, handled or not; zero if there is none
}

// Policies are the policy of a child and, during a graceful switch, the one that will replace it.
type Policies struct{ Current, Pending *Stub }

// Latest returns the policy that gets updates.
func (p *Policies) Latest() *Stub {
	if p.Pending != nil {
		return p.Pending
	}
	return p.Current
}

// SwitchTo gives the child its first policy, or one of another type.
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

// Reported records a report of a policy, and returns whether it is also one of the child.
func (p *Policies) Reported(s *Stub, r Report) bool {
	s.Now = r
	if p.Pending != nil && (s == p.Current && r.State != Ready ||
		s == p.Pending && (r.State != Connecting || p.Current.Now.State != Ready)) {
		p.Current.Closed = true
		p.Current, p.Pending = p.Pending, nil
		return true
	}
	return s == p.Current
}

// Refused records that the latest policy has refused its update. If that policy takes over before
// it has reported, it counts as failed.
func (p *Policies) Refused(err string) {
	if p.Pending != nil {
		p.Pending.Now = fails(err)
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

// Stubs are policies in the order in which they were built.
type Stubs []*Stub

func (all *Stubs) Build(id string) *Stub {
	s := &Stub{ID: id, Now: unreported}
	*all = append(*all, s)
	return s
}

// Find returns the newest policy with this id that is not closed, or nil.
func (all Stubs) Find(id string) *Stub {
	for _, s := range slices.Backward(all) {
		if s.ID == id && !s.Closed {
			return s
		}
	}
	return nil
}

// Told describes what each open policy has received: its last update, and how many ExitIdle calls
// and resolver errors.
func (all Stubs) Told() string {
	var told []string
	for _, s := range all {
		if !s.Closed {
			told = append(told, fmt.Sprintf("%s(%d,%d,%d)", s.ID, s.Version, s.ExitIdles, s.Errors))
		}
	}
	slices.Sort(told)
	return strings.Join(told, " ")
}
