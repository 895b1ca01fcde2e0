package shell

import (
	"time"

	"github.com/understudy-lb/understudy/internal/live"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// Tree holds the snapshots of a policy and of all policies below it. The snapshots may have been
// taken at different times.
type Tree struct {
	*Snapshot           // nil before the first snapshot
	Busy      time.Time // start of the current batch of events; zero if there is none
	Below     []*Tree   // one entry per child of Snapshot; nil if the child's policy is not Watchable
}

// TreeOf returns the tree of a policy. It never blocks, even while the policies handle events.
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

// Busy implements Watchable.
func (s *Shell) Busy() time.Time {
	if began := s.began.Load(); began != 0 {
		return time.Unix(0, began)
	}
	return time.Time{}
}

// begin records when a batch of events began, if the policy is watched.
func (s *Shell) begin() {
	if s.watchers.Load() > 0 {
		s.began.Store(time.Now().UnixNano())
	}
}

// attach registers the policy with the debug pages if it is the topmost policy of a channel.
func (s *Shell) attach(channel *stateattr.Channel) {
	if !live.On() || s.live != nil {
		return
	}
	known, _ := channel.Live.(*live.Channel)
	if s.above != nil {
		s.live = known
		return
	}
	if known == nil {
		known = live.New(s.Options.Target.URL.Redacted(), nil)
	}
	s.live = known
	s.unwatch = s.Watch()
	s.begin() // the batch began before Watch
	var owner any
	if s.Options.ChannelzParent != nil {
		owner = s.Options.ChannelzParent
	}
	known.Attach(Watchable(s), owner)
}

// detach stores the last tree of the policy for the debug pages.
func (s *Shell) detach() {
	if s.unwatch != nil {
		last := TreeOf(s)
		last.Busy = time.Time{} // the current batch is Close itself
		s.live.Retire(last)
		s.unwatch()
	}
}

// Note adds an event to the channel's history on the debug pages, if they are enabled.
func (s *Shell) Note(text string) { s.live.Note(text) }
