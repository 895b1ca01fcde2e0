package feed

import (
	"time"

	"github.com/understudy-lb/understudy/internal/printable"
)

// trouble is what is wrong with a source.
type trouble struct {
	text      string // "" where nothing is
	since     time.Time
	confirmed time.Time // until when the answer in use was, zero where none is or it still is
}

// Unconfirmed takes note of why the source cannot hear whether its last answer still holds,
// for those who look; nil where it can again. It was so since the given time, and the answer
// was confirmed until the other, zero where something else confirms it. Unlike a failure it
// changes nothing, and the source has logged it.
func (in *Inlet) Unconfirmed(err error, since, confirmed time.Time) {
	f, s := in.feed, in.slot
	text := ""
	if err != nil {
		text = f.textOf(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed || s.gone:
	case err == nil:
		f.over(s, &s.lost)
	default:
		s.wrong(text)
		if s.lost.text != text {
			consequence := ""
			if !confirmed.IsZero() {
				consequence = staysInUse
			}
			f.live.Note(f.line(s, text) + consequence)
		}
		s.lost = trouble{text, since, confirmed}
	}
}

// over notes that something is wrong no longer. The lock is held.
func (f *Feed) over(s *slot, t *trouble) {
	if t.text != "" {
		f.live.Note(f.line(s, "well again after "+printable.Duration(time.Since(t.since))))
	}
	*t = trouble{}
}

const staysInUse = "; the endpoints from before stay in use"

// complain notes what is wrong, tells the log if that is new, with what follows from it,
// and returns whether it was. The lock is held.
func (f *Feed) complain(s *slot, text, consequence string) bool {
	s.wrong(text)
	if s.complaint.text == text {
		return false
	}
	if s.complaint.text == "" {
		s.complaint.since, s.complaint.confirmed = time.Now(), s.confirmedUntil()
	}
	s.complaint.text = text
	logger.Warning(f.line(s, text) + consequence)
	f.live.Note(f.line(s, text) + consequence)
	return true
}

// confirmedUntil returns until when the answer of s is confirmed, if it has one. A source
// that is asked has confirmed it when it last answered, while channels are shown. One that
// tells what is new unasked has confirmed it until it says otherwise, or cannot be heard.
// The lock is held.
func (s *slot) confirmedUntil() time.Time {
	switch {
	case s.phase != answered:
		return time.Time{}
	case s.inherited:
		return s.until
	case s.resolves():
		return s.answered
	case !s.lost.confirmed.IsZero():
		return s.lost.confirmed
	case s.whole != nil && !s.whole.lost.confirmed.IsZero():
		return s.whole.lost.confirmed
	}
	return time.Now()
}
