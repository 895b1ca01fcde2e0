package cds

import (
	"math/rand/v2"
	"time"

	"github.com/understudy-lb/understudy/internal/backoff"
)

// The time between two answers over many names. Each costs a look at all names, and a round
// of look-ups gives an answer a name, all within seconds.
const (
	fewNames  = 16                     // which need no pause
	pauseEach = 100 * time.Microsecond // a name; the look takes about a thirtieth
)

// pacing spaces answers. It is guarded by the watch's mu.
type pacing struct {
	told     time.Time   // when the last answer began
	soon     *time.Timer // for the next one
	due      bool        // it runs
	again    bool        // the last answer was not taken, or the names were asked for
	refusals int         // in a row, of those that the timer passed on
}

// begin notes that an answer is made. The lock is held.
func (p *pacing) begin() { p.told, p.due = time.Now(), false }

// changed passes on what is known, now or soon. It returns an error where it was not taken.
func (w *strictWatch) changed() error {
	w.mu.Lock()
	var wait time.Duration
	if n := len(w.found); n > fewNames && !w.told.IsZero() {
		wait = time.Until(w.told.Add(time.Duration(n) * pauseEach))
	}
	ready := w.ready()
	if ready && wait > 0 {
		w.later(wait)
	}
	w.mu.Unlock()
	if !ready || wait > 0 {
		return nil
	}
	return w.tell()
}

// later passes on what is known then. Nobody hears whether it is taken, so it is tried again
// where it is not. The lock is held.
func (w *strictWatch) later(wait time.Duration) {
	if w.due {
		return
	}
	w.due = true
	w.soon = time.AfterFunc(wait, func() {
		refused := w.tell() != nil
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case !refused:
			w.refusals = 0
		case !w.closed:
			w.later(backoff.Delay(w.refusals, rand.Float64()))
			w.refusals++
		}
	})
}
