package feed

import "slices"

// phase is how far a mechanism has come.
type phase int

const (
	outstanding phase = iota // its source has said nothing
	failed                   // its source failed before it ever answered
	answered                 // its last answer stays in use when its source fails
)

// action says what to tell the channel.
type action int

const (
	wait   action = iota // nothing
	report               // the errors of the mechanisms, since none has an address
	send                 // a state that lists the mechanisms that are not outstanding
)

// progress decides when to tell the channel what. It knows neither time nor answers.
// Nothing is sent until the first mechanism that has not failed has answered, or the
// time to wait is over. So a slow mechanism does not send the first calls to those
// behind it.
type progress struct {
	phases []phase // in priority order
	late   bool    // the time to wait is over
	sent   bool    // a state was sent; from now on it must be kept up to date
}

// next returns what to tell the channel now.
func (p *progress) next() action {
	first, some := p.look()
	switch {
	case p.sent: // then some mechanism has answered, and its last answer is in use
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

// look returns the phase of the first mechanism that has not failed, and whether any
// has answered.
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
