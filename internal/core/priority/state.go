package priority

// State is a connectivity state.
type State int

// The connectivity states, without SHUTDOWN.
const (
	Idle State = iota
	Connecting
	Ready
	TransientFailure
)

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
