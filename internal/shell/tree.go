package shell

import (
	"time"

	"github.com/understudy-lb/understudy/internal/live"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// Tree is what a policy and all below it looked like, each at a moment of its own.
type Tree struct {
	*Snapshot           // nil where none was made yet
	Busy      time.Time // since when it handles one batch of events, zero if it does not
	Below     []*Tree   // of each child of the Snapshot, nil where it cannot be asked
}

// TreeOf returns what a policy and all below it look like. It never waits, whatever
// they are doing.
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

// Busy is described at Watchable.
func (s *Shell) Busy() time.Time {
	if began := s.began.Load(); began != 0 {
		return time.Unix(0, began)
	}
	return time.Time{}
}

// begin notes, while somebody watches, when a batch of events began.
func (s *Shell) begin() {
	if s.watchers.Load() > 0 {
		s.began.Store(time.Now().UnixNano())
	}
}

// attach makes the policy known to whoever shows channels, if it is the top of one.
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
	s.begin() // this batch counts, too
	var owner any
	if s.Options.ChannelzParent != nil {
		owner = s.Options.ChannelzParent
	}
	known.Attach(Watchable(s), owner)
}

// detach notes what the policy looked like last.
func (s *Shell) detach() {
	if s.unwatch != nil {
		last := TreeOf(s)
		last.Busy = time.Time{} // with its own end
		s.live.Retire(last)
		s.unwatch()
	}
}

// Note notes an event for whoever shows channels, if there is somebody.
func (s *Shell) Note(text string) { s.live.Note(text) }
