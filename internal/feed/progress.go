package feed

// phase is how far a mechanism has come.
type phase int

const (
	outstanding phase = iota // no word from its source
	failed                   // its source failed before it ever answered, or its last answer was empty
	answered                 // its last answer stays in use when its source fails
)

// action is what the channel is to be told.
type action int

const (
	wait   action = iota // nothing
	report               // the errors of the mechanisms, since none has an address
	send                 // a state that lists the mechanisms that are not outstanding
	both                 // such a state, and the errors, since nothing in it has an address
)

// progress decides when the channel is told what. It knows neither time nor what
// was answered. Nothing is sent until the first mechanism
// has answered or failed, or the time to wait is over, so that one that is slow does not
// send the first calls to the second; nor, within that time, while each answer so far
// is a failure and another mechanism has not answered.
type progress struct {
	phases []phase // in priority order
	late   bool    // the time to wait for the first mechanism is over
	sent   bool    // a state was sent; what is in use must be kept up to date
}

// next returns what to tell the channel now.
func (p *progress) next() action {
	var count [answered + 1]int
	for _, phase := range p.phases {
		count[phase]++
	}
	switch {
	case p.sent && count[answered] > 0:
		return send
	case p.sent:
		return both
	case p.phases[0] == outstanding && !p.late:
		return wait
	case count[answered] > 0:
		return send
	case count[outstanding] > 0 && !p.late:
		return wait
	case count[failed] > 0:
		return report
	default:
		return wait
	}
}
