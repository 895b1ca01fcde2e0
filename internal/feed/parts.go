package feed

import (
	"errors"
	"reflect"
	"slices"
)

var errPartOfPart = errors.New("it gives parts itself, and is one: want them in the list that it is in")

// parts are the mechanisms that have taken the place of one whose source found that its
// endpoints come from elsewhere.
type parts struct {
	now  []*slot   // nil while the whole is used
	next []*slot   // nil where now is the last list
	wait *deadline // for next, nil where it does not or did not have to be waited for
}

// all returns the parts of both lists.
func (p *parts) all() []*slot {
	list := slices.Clone(p.now)
	for _, s := range p.next {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// Parts takes a list of mechanisms, at least one, in place of an answer. Their names must
// differ from one another. A part that has the name of one before it inherits what that
// answered last; where the Source is the same it is the same part, and goes on. The server
// name and the trust in names are those of the whole.
//
// A part has no parts: from one, Parts is a failure.
//
// What is in use stays in use until one of the new list has answered and all others have
// answered or failed, or the time to wait is over.
func (in *Inlet) Parts(list []Mechanism) {
	in.feed.mu.Lock()
	nested := in.slot.whole != nil
	in.feed.mu.Unlock()
	if nested {
		in.Fail(errPartOfPart)
		return
	}
	in.split(list, trouble{})
	in.feed.count(in.slot, accepted)
	_ = in.feed.publish(nil)
}

// split does it. A complaint says why the list is an old one, which takes the place of
// nothing: split returns whether the list was taken.
func (in *Inlet) split(list []Mechanism, complaint trouble) bool {
	f, s := in.feed, in.slot
	s.splitting.Lock()
	defer s.splitting.Unlock()
	f.mu.Lock()
	if f.closed || s.gone || complaint.text != "" && s.phase == answered {
		f.mu.Unlock()
		return false
	}
	f.heard(s, said{parts: list}, complaint)
	before := s.parts.all()
	fresh := f.replace(s, list)
	if len(fresh) > 0 && s.parts.wait != nil && s.parts.wait.over {
		s.parts.wait = nil // the parts before these had their time
	}
	switch {
	case slices.Equal(s.parts.next, s.parts.now):
		s.parts.next = nil
		s.parts.endWait()
	case s.parts.now == nil && s.phase != answered:
		s.parts.now = []*slot{} // there is nothing to go on with
	}
	s.phase = answered
	retired := append(f.dropped(s, before), f.turn()...)
	f.starting++ // what they answer meanwhile is one update
	f.mu.Unlock()
	f.retire(retired)
	watches := make([]Watch, len(fresh))
	for i, p := range fresh {
		watches[i], _ = f.start(p) // its error is noted
	}
	f.mu.Lock()
	f.starting--
	retired = append(f.began(fresh, watches), f.turn()...)
	f.mu.Unlock()
	f.retire(retired)
	return true
}

// replace makes the next list of s, and returns those parts whose source is to be started.
// The lock is held.
func (f *Feed) replace(s *slot, list []Mechanism) (fresh []*slot) {
	before := s.parts.all()
	s.parts.next = nil
	for _, m := range list {
		if s.Key != nil {
			m.Key = partKey{s.Key, m.Name}
		}
		if s.Name != "" {
			m.Name = s.Name + "/" + m.Name
		}
		m.ServerName, m.TrustNames = s.ServerName, s.TrustNames
		p := f.part(before, m)
		p.whole = s
		f.noteOutlierDetection(p)
		if p.watch == nil && !slices.Contains(before, p) {
			fresh = append(fresh, p)
		}
		s.parts.next = append(s.parts.next, p)
	}
	return fresh
}

// part returns the place of a part: that of one before, where the source is the same, or a
// new one, which inherits what was answered under its name. The lock is held.
func (f *Feed) part(before []*slot, m Mechanism) *slot {
	var heir *slot
	for _, p := range before {
		switch {
		case p.Name != m.Name:
		case same(p.Source, m.Source):
			if !p.OutlierDetection.Equal(m.OutlierDetection) {
				p.OutlierDetection = m.OutlierDetection
				f.touch(p)
			}
			return p
		case heir == nil || p.phase == answered && !p.inherited: // the later knows more
			heir = p
		}
	}
	if heir == nil {
		p := newSlot(m, f.childName(m.Name))
		p.plain = p.child
		return p
	}
	kept.begin(m.Key)
	p := &slot{Mechanism: m, child: heir.child, plain: heir.plain, naming: heir.naming}
	p.phase, p.said, p.tree, p.err = heir.phase, heir.said, heir.tree, heir.err
	p.complaint, p.noted, p.answered = heir.complaint, heir.noted, heir.answered
	p.inherited = p.phase != outstanding
	p.until = heir.confirmedUntil()
	if heir.holds() && !heir.inherited && !heir.resolves() {
		kept.renew(m.Key, heir.said, p.until)
	}
	return p
}

// noteOutlierDetection logs where a cluster wants it in vain, once for a channel. The lock
// is held.
func (f *Feed) noteOutlierDetection(s *slot) {
	if s.OutlierDetection != nil && f.config.Settings.PickFirst && !f.noticed {
		f.noticed = true
		logger.Warning(f.line(s, "outlier_detection of the cluster has no effect with pickFirst"))
	}
}

// partKey is the key under which the answers of a part are kept.
type partKey struct {
	whole any
	part  string
}

// same returns whether two sources are known to be one.
func same(a, b any) bool {
	return a != nil && b != nil && reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

// began notes that parts were started. It returns the watches of those that are not needed
// any more. The caller then calls turn before it gives the lock away: a source of the list
// before, which answers just then, must not be the one that has itself closed. The lock is
// held.
func (f *Feed) began(fresh []*slot, watches []Watch) (gone []Watch) {
	for i, p := range fresh {
		if f.closed || p.gone {
			gone = append(gone, watches[i])
			continue
		}
		p.watch = watches[i]
		f.touch(p)
	}
	return gone
}
