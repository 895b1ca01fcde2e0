package shell

import (
	"time"

	"github.com/understudy-lb/understudy/internal/live"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// Tree holds the snapshots of a policy and of all policies below it. The snapshots may have been
// taken at different times.
type Tree struct {
	*Snapshot // nil before the first snapshot
	Busy      time.Time
	Below     []*Tree // one for each child in Snapshot; nil if the child's policy is not Watchable
}

// TreeOf returns the tree of a policy. It does not block, even if a policy is handling events.
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

func (s *Shell) begin() {
	if s.watchers.Load() > 0 {
		s.began.Store(time.Now().UnixNano())
	}
}

// attach shows the policy on the debug page if it is the topmost policy of a channel.
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
	s.begin() // the policy was not watched yet when this batch began, so its beginning is recorded now
	var owner any
	if s.Options.ChannelzParent != nil {
		owner = s.Options.ChannelzParent
	}
	known.Attach(Watchable(s), owner)
}

func (s *Shell) detach() {
	if s.unwatch != nil {
		last := TreeOf(s)
		last.Busy = time.Time{} // the policy is only busy with Close itself
		s.live.Retire(last)
		s.unwatch()
	}
}

// Note adds a line to the channel's history on the debug page, if that is enabled.
func (s *Shell) Note(text string) { s.live.Note(text) }
