package ads

// Servers decides which management servers a target subscribes to, and which server's resources it
// uses (gRFC A71). The servers are in order of preference. All resources in use come from one
// server.
//
// The client is always subscribed to the first server. The next one is asked when the last one
// asked cannot be reached and has not sent all resources. Once a server has sent all resources, it
// is used, and the servers behind it are no longer asked.
//
// gRFC A71 returns to an earlier server when it sends its first resource. Servers waits until no
// resource is missing and at least one is good, so that an incomplete server does not replace a
// working one.
type Servers struct {
	// reachabilityOnly is gRFC A95's rule: the next server is asked as soon as the last one asked is
	// unreachable, even if no resource is missing.
	reachabilityOnly bool

	states []serverState
	asked  int
	used   int
}

type serverState struct {
	lost bool
	has  Has
}

// Has describes which of the target's resources a server has sent.
type Has int

const (
	// Waiting means that a resource has not arrived yet.
	Waiting Has = iota
	// Nothing means that the server has none of the resources.
	Nothing
	// All means that no resource is outstanding and at least one is good.
	All
)

// NewServers returns the state for count servers, of which only the first is asked.
func NewServers(count int, reachabilityOnly bool) *Servers {
	return &Servers{reachabilityOnly: reachabilityOnly, states: make([]serverState, count), asked: 1, used: -1}
}

// Asked returns the number of servers to subscribe to, counted from the first.
func (s *Servers) Asked() int { return s.asked }

// Used returns the index of the server whose resources are used, or -1.
func (s *Servers) Used() int { return s.used }

// Reachable is called when a server has become reachable or unreachable.
func (s *Servers) Reachable(server int, reachable bool) {
	if server < s.asked {
		s.states[server].lost = !reachable
		s.decide()
	}
}

// Sent is called when a server has sent resources, or when it is known not to have a resource.
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

// usable reports whether server i makes the servers behind it unnecessary.
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
