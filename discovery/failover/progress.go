package failover

// phase is how far a part has come.
type phase int

const (
	outstanding phase = iota // no word from its resolver
	failed                   // its resolver failed before it ever answered, or its last answer was empty
	answered                 // its last answer had addresses, and stays in use when its resolver fails
)

// action is what the channel is to be told.
type action int

const (
	wait   action = iota // nothing
	report               // the errors of the parts, since none has an address
	send                 // a state that lists the parts that are not outstanding
	both                 // such a state, and the errors, since nothing in it has an address
)

// progress decides when the channel is told what. It knows neither time nor what
// was answered. See "Starting" in the documentation of the package.
type progress struct {
	phases []phase // in priority order
	late   bool    // the time to wait for the first part is over
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
