package feed

import (
	"errors"
	"fmt"
	"time"
)

// A source may be silent for this long where its answer from before the channel was idle is
// kept. What hangs would hold calls back until gRPC gives up on it, which takes 20 s.
const hush = 2 * time.Second

// hushOfPart is the time of a part where the list that it is in is itself from before: the
// source of the list had its time. It is enough for a name to be looked up.
const hushOfPart = 200 * time.Millisecond

var errAnswered = errors.New("the source has answered")

// listen waits for the source of s to say something, and uses what is kept of it otherwise.
func (f *Feed) listen(s *slot) {
	if _, _, there := kept.get(s.Key, time.Now()); !there {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || s.gone || s.phase != outstanding {
		return
	}
	limit := hush
	if s.whole != nil && s.whole.complaint.text != "" {
		limit = hushOfPart
	}
	s.hush = time.AfterFunc(limit, func() { f.heardNothing(s, limit) })
}

// heardNothing uses what is kept of s, unless its source has said something.
func (f *Feed) heardNothing(s *slot, in time.Duration) {
	f.mu.Lock()
	silent := s.phase == outstanding
	f.mu.Unlock()
	if silent && (&Inlet{f, s}).recall(fmt.Errorf("nothing was heard for %v", in)) {
		_ = f.publish(nil) // the source does not know of it
	}
}

// listenNoMore ends the wait. The lock is held.
func (s *slot) listenNoMore() {
	if s.hush != nil {
		s.hush.Stop()
	}
}
