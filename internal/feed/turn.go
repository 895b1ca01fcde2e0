package feed

import (
	"slices"
	"time"

	"github.com/understudy-lb/understudy/topology"
)

// deadline is when a list is waited for no longer.
type deadline struct {
	timer *time.Timer
	over  bool
}

// endWait ends the wait of a list that is used, or will not be.
func (p *parts) endWait() {
	if p.wait != nil {
		p.wait.timer.Stop()
		p.wait = nil
	}
}

// turn uses the next list of each mechanism that has one and need not wait for it. It
// returns the watches to be closed. The lock is held.
func (f *Feed) turn() (retired []Watch) {
	if f.closed {
		return nil
	}
	has := func(list []*slot, phase phase) bool {
		return slices.ContainsFunc(list, func(s *slot) bool { return s.phaseOf() == phase })
	}
	waits := func(s *slot) bool { return s.phaseOf() == outstanding || s.inherited }
	for _, s := range f.slots {
		p := &s.parts
		inUse := p.now == nil || has(p.now, answered)
		switch {
		case p.next == nil:
		case inUse && (!has(p.next, answered) || slices.ContainsFunc(p.next, waits) && (p.wait == nil || !p.wait.over)):
			if p.wait == nil {
				w := &deadline{}
				w.timer = time.AfterFunc(f.patience(), func() { f.loseWith(w) })
				p.wait = w
			}
		default:
			retired = append(retired, f.useNext(s)...)
		}
	}
	return retired
}

// loseWith ends a wait for those of a list that have not answered.
func (f *Feed) loseWith(w *deadline) {
	f.mu.Lock()
	w.over = true
	retired := f.turn()
	f.mu.Unlock()
	f.retire(retired)
	_ = f.publish(nil)
}

// useNext uses the next list of s. The lock is held.
func (f *Feed) useNext(s *slot) []Watch {
	before := s.parts.all()
	s.parts.endWait()
	s.parts = parts{now: s.parts.next}
	s.said, s.tree = said{}, topology.Tree{}
	if len(s.parts.now) > 1 && f.timer == nil && !f.progress.sent {
		f.timer = time.AfterFunc(f.patience(), f.losePatience)
	}
	f.changed = true
	return f.dropped(s, before)
}

// dropped returns the watches of the parts that s no longer has. The lock is held.
func (f *Feed) dropped(s *slot, before []*slot) (watches []Watch) {
	after := s.parts.all()
	for _, p := range before {
		if slices.Contains(after, p) {
			continue
		}
		p.gone = true
		p.listenNoMore()
		if p.holds() && !p.inherited && !p.resolves() {
			kept.renew(p.Key, p.said, p.confirmedUntil())
		}
		kept.end(p.Key)
		if p.watch != nil {
			watches = append(watches, p.watch)
		}
	}
	return watches
}

// whole uses the answer of s itself again, in place of its parts. It returns the watches to
// be closed. The lock is held.
func (f *Feed) whole(s *slot) []Watch {
	before := s.parts.all()
	s.parts.endWait()
	s.parts = parts{}
	return f.dropped(s, before)
}

// retire closes watches, after whatever they are being asked now.
func (f *Feed) retire(watches []Watch) {
	if len(watches) == 0 {
		return
	}
	f.mu.Lock()
	asking := f.asking
	if asking {
		f.retired = append(f.retired, watches...)
	}
	f.mu.Unlock()
	if !asking {
		closeAll(watches)
	}
}
