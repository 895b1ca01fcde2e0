package priority

type State int

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
