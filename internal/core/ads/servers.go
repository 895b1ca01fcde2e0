package ads

// Servers selects the management server whose resources a target uses, from a list in order of
// preference (gRFC A71). All resources in use come from one server.
//
// The next server is added when the last server added is unreachable and a resource has not arrived
// from it yet. A preferred server that has sent all resources replaces the servers behind it.
//
// gRFC A71 returns to a preferred server when its first resource arrives. Servers waits until no
// resource is missing and at least one is good, so that an incomplete server does not replace a
// working one.
type Servers struct {
	// reachabilityOnly means that the next server is also added if no resource is missing (gRFC
	// A95).
	reachabilityOnly bool

	states []serverState
	asked  int
	used   int
}

type serverState struct {
	lost bool
	has  Has
}

// Has is how many of a target's resources a server has sent.
type Has int

const (
	// Waiting means that a resource has not arrived yet.
	Waiting Has = iota
	// Nothing means that no resource is missing, but none is good: the server does not have them.
	Nothing
	// All means that no resource is missing, and at least one is good.
	All
)

// NewServers returns a selection among count servers. At first, only the first server is asked.
func NewServers(count int, reachabilityOnly bool) *Servers {
	return &Servers{reachabilityOnly: reachabilityOnly, states: make([]serverState, count), asked: 1, used: -1}
}

// Asked returns the number of servers to subscribe to, counted from the first.
func (s *Servers) Asked() int { return s.asked }

// Used returns the server whose resources must be used, or -1 if there is no such server.
func (s *Servers) Used() int { return s.used }

// Reachable is called when a server becomes reachable or unreachable.
func (s *Servers) Reachable(server int, reachable bool) {
	if server < s.asked {
		s.states[server].lost = !reachable
		s.decide()
	}
}

// Sent is called when the resources of a server have changed, or one of them is known to be absent.
func (s *Servers) Sent(server int, has Has) {
	if server < s.asked {
		s.states[server].has = has
		s.decide()
	}
}

func (s *Servers) decide() {
	for i := range s.asked {
		if s.usable(i) {
			s.used = i
			s.forget(i + 1)
			break
		}
	}
	last := s.states[s.asked-1]
	if last.lost && (last.has == Waiting || s.reachabilityOnly) && s.asked < len(s.states) {
		s.asked++
	}
}

// usable reports whether a server takes precedence over those behind it.
func (s *Servers) usable(i int) bool {
	switch state := s.states[i]; {
	case s.reachabilityOnly && state.lost:
		return false
	case state.has == Nothing:
		return s.used < 0 || s.used == i
	default:
		return state.has == All
	}
}

func (s *Servers) forget(from int) {
	for i := from; i < s.asked; i++ {
		s.states[i] = serverState{}
	}
	s.asked = from
}
