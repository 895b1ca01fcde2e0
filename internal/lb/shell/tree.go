package shell

import (
	"time"

	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// Tree has the snapshots of a policy and of everything below it. They weren't necessarily taken at
// the same time.
type Tree struct {
	*Snapshot
	Busy  time.Time
	Below []*Tree // one per child in Snapshot; nil if the child's policy isn't Watchable
}

// TreeOf returns the tree of a policy. It doesn't block, even if a policy is busy handling events.
func TreeOf(w Watchable) *Tree {
	t := &Tree{Snapshot: w.Snapshot(), Busy: w.Busy()}
	if t.Snapshot == nil {
		return t
	}
	t.Below = make([]*Tree, len(t.Children))
	for i, c := range t.Children {
		if c.Below != nil {
			t.Below[i] = TreeOf(c.Below)
		}
	}
	return t
}

func (s *Shell) Busy() time.Time {
	if began := s.batchStart.Load(); began != 0 {
		return time.Unix(0, began)
	}
	return time.Time{}
}

func (s *Shell) begin() {
	if s.watchers.Load() > 0 {
		s.batchStart.Store(time.Now().UnixNano())
	}
}

func (s *Shell) attach(channel *stateattr.Channel) {
	if !live.Enabled() || s.live != nil {
		return
	}
	entry, _ := channel.Live.(*live.Channel)
	if s.parentInstance != nil {
		s.live = entry
		return
	}
	if entry == nil {
		entry = live.New(s.Options.Target.URL.Redacted(), nil)
	}
	s.live = entry
	s.unwatch = s.Watch()
	s.begin() // we weren't watching when this batch began, so record that now
	var owner any
	if s.Options.ChannelzParent != nil {
		owner = s.Options.ChannelzParent
	}
	entry.Attach(Watchable(s), owner)
}

func (s *Shell) detach() {
	if s.unwatch != nil {
		last := TreeOf(s)
		last.Busy = time.Time{} // it's busy with Close itself
		s.live.Retire(last)
		s.unwatch()
	}
}

func (s *Shell) Note(text string) { s.live.Note(text) }
