package feed

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/topology"
)

// slot is a mechanism at work, and what its source said last.
type slot struct {
	Mechanism
	child string // the beginning of the names of its children over a cluster
	plain string // the name of its child over plain endpoints
	gone  bool   // what its source says counts no longer
	watch Watch  // nil until the source is started
	phase phase
	hush  *time.Timer // see listen; nil where nothing is kept
	parts parts       // the mechanisms that have taken its place, if any

	splitting sync.Mutex // one list of parts at a time
	naming    *naming
	inherited bool      // its source has not said a word; what there is was said by one before it
	until     time.Time // with inherited: until when that one confirmed it, if it is known
	whole     *slot     // of which it is a part, if it is

	said      said          // its last answer
	names     Names         // of which its next answer is made
	answered  time.Time     // when it last said that, while channels are shown
	tree      topology.Tree // over that answer; without endpoints while there is none
	err       error         // why there is none
	complaint trouble       // what it says is wrong now
	lost      trouble       // why it cannot hear whether its answer still holds
	lastError string        // what was wrong last, while channels are shown
	failedAt  time.Time     // when that was said last
	noted     string        // what the log said about the answer last
	told      bool          // it knows that the channel did not take an update
	ask       bool          // it is to be asked to look again
}

// naming gives the children of a mechanism their names. Parts that follow one another under
// one name share it.
type naming struct {
	mu         sync.Mutex // one answer at a time becomes a tree
	translator topology.Translator
}

// newSlot returns the place of a mechanism.
func newSlot(m Mechanism, child string) *slot {
	kept.begin(m.Key)
	return &slot{Mechanism: m, child: child, plain: m.Name, naming: &naming{translator: topology.Translator{Name: child, TrustNames: m.TrustNames}}}
}

// inUse returns the mechanisms in priority order, parts in the place of the whole. The
// lock is held.
func (f *Feed) inUse() []*slot {
	var list []*slot
	for _, s := range f.slots {
		if s.parts.now == nil {
			list = append(list, s)
		} else {
			list = append(list, s.parts.now...)
		}
	}
	return list
}

// touch notes that s has changed. The channel is told if s is in use. The lock is held.
func (f *Feed) touch(s *slot) {
	f.changed = f.changed || slices.Contains(f.inUse(), s)
}

// all returns every mechanism: also a whole whose parts are in use, and parts that are
// not yet in use or will soon be out of it. The lock is held.
func (f *Feed) all() []*slot {
	var list []*slot
	for _, s := range f.slots {
		list = append(append(list, s), s.parts.all()...)
	}
	return list
}

// open returns the watches of all sources that have been started. The lock is held.
func (f *Feed) open() []Watch {
	var watches []Watch
	for _, s := range f.all() {
		if s.watch != nil {
			watches = append(watches, s.watch)
		}
	}
	return watches
}

// phaseOf returns how far s has come. Nothing of it is used before all of it is known. The
// lock is held.
func (s *slot) phaseOf() phase {
	if s.watch == nil {
		return outstanding
	}
	return s.phase
}

// resolves returns whether the source of s can be asked to look again. The lock is held.
func (s *slot) resolves() bool {
	_, ok := s.watch.(resolverNow)
	return ok
}

// holds returns whether the last answer of s's source is confirmed. The lock is held.
func (s *slot) holds() bool { return s.phase == answered && s.complaint.text == "" }

// prefix returns the beginning of the names of mechanism i's children: its name, unless
// a child of another mechanism could then have the same name.
func (c *Config) prefix(i int) string {
	name := c.Mechanisms[i].Name
	for name != "" && slices.ContainsFunc(c.Mechanisms, func(m Mechanism) bool {
		return m.Name == name && name != c.Mechanisms[i].Name || strings.HasPrefix(m.Name, name+"/")
	}) {
		name += fmt.Sprintf("'%d", i)
	}
	return name
}

// childName returns such a name for a part that comes later. No other mechanism's name
// begins with it, nor it with another's. The lock is held.
func (f *Feed) childName(name string) string {
	list := f.all()
	for i, unique := 2, name; ; i++ {
		if !slices.ContainsFunc(list, func(s *slot) bool {
			return s.child == unique || strings.HasPrefix(s.child, unique+"/") || s.child != "" && strings.HasPrefix(unique, s.child+"/child")
		}) {
			return unique
		}
		unique = fmt.Sprintf("%s'%d", name, i)
	}
}

// confirmAll notes until when each source's last answer was confirmed.
func (f *Feed) confirmAll() {
	type held struct {
		key   any
		said  said
		watch Watch
	}
	var all []held
	f.mu.Lock()
	if !f.closed {
		for _, s := range f.all() {
			if s.holds() && !s.inherited {
				h := held{s.Key, s.said, s.watch}
				if len(s.parts.all()) > 0 {
					h.said = said{} // its list was kept
				}
				all = append(all, h)
			}
		}
	}
	f.mu.Unlock()
	for _, h := range all {
		at := time.Now()
		if c, ok := h.watch.(confirmer); ok {
			at = c.Confirmed()
		}
		if h.said.isEmpty() {
			kept.confirm(h.key, at)
		} else {
			kept.renew(h.key, h.said, at)
		}
	}
}
