package priority

// State is a connectivity state.
type State int

// The states.
const (
	Idle State = iota
	Connecting
	Ready
	TransientFailure
)

// String returns the name that gRPC gives the state.
func (s State) String() string {
	switch s {
	case Idle:
		return "IDLE"
	case Connecting:
		return "CONNECTING"
	case Ready:
		return "READY"
	case TransientFailure:
		return "TRANSIENT_FAILURE"
	}
	return "INVALID_STATE"
}

// timer is the phase of one of a child's timers.
type timer int

const (
	stopped timer = iota
	running
	fired
)
