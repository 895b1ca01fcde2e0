package feed

import "slices"

// phase is how far a mechanism has come.
type phase int

const (
	outstanding phase = iota // no word from its source
	failed                   // its source failed before it ever answered
	answered                 // its last answer stays in use when its source fails
)

// action is what the channel is to be told.
type action int

const (
	wait   action = iota // nothing
	report               // the errors of the mechanisms, since none has an address
	send                 // a state that lists the mechanisms that are not outstanding
)

// progress decides when the channel is told what. It knows neither time nor what
// was answered. A mechanism without a word is a priority that waits: nothing is sent
// until the first one that has not failed has answered, or the time to wait is over, so
// that one that is slow does not send the first calls to those behind it.
type progress struct {
	phases []phase // in priority order
	late   bool    // the time to wait is over
	sent   bool    // a state was sent; what is in use must be kept up to date
}

// next returns what to tell the channel now.
func (p *progress) next() action {
	first, some := p.look()
	switch {
	case p.sent: // so that some has answered, and its last answer is in use
		return send
	case first == outstanding && !p.late:
		return wait
	case some:
		return send
	case slices.Contains(p.phases, failed):
		return report
	default:
		return wait
	}
}

// look returns how far the first mechanism has come that has not failed, and whether
// some has answered.
func (p *progress) look() (first phase, some bool) {
	first = failed
	for _, phase := range p.phases {
		if first == failed {
			first = phase
		}
		some = some || phase == answered
	}
	return first, some
}
