package ads

// Servers decides from which of several management servers, in the order of preference,
// a target takes its resources (gRFC A71). What each server says is kept apart. All
// resources in use come from one server: they are never mixed.
//
// The next server is asked when the last one asked cannot be reached and still owes a
// resource. The resources in use stay in use until another server has sent all that is
// needed. As soon as a preferred server has sent it, that one is used, and those behind
// it are no longer asked.
//
// A71 goes back to a server with the first resource that it sends. Here the server must
// have sent all of them, and a good one among them: what works is not given up for less.
type Servers struct {
	// ReachabilityOnly asks the next server even if nothing is waited for (A95,
	// fallback_on_reachability_only).
	reachabilityOnly bool

	states []serverState
	asked  int // the servers before this one are asked
	used   int // the server in use, or -1
}

type serverState struct {
	lost bool // it cannot be reached
	has  Has
}

// Has is how much a server has sent of what a target needs.
type Has int

const (
	// Waiting means that something is waited for: A71's resource that is not cached.
	Waiting Has = iota
	// Nothing means that nothing is waited for, and nothing is good: the server has
	// said that there is no such resource.
	Nothing
	// All means that nothing is waited for, and something is good.
	All
)

// NewServers returns a choice among count servers. The first one is asked at once.
func NewServers(count int, reachabilityOnly bool) *Servers {
	return &Servers{reachabilityOnly: reachabilityOnly, states: make([]serverState, count), asked: 1, used: -1}
}

// Asked returns how many servers are to be asked, from the first on.
func (s *Servers) Asked() int { return s.asked }

// Used returns the server whose resources are to be used, -1 while none has any.
func (s *Servers) Used() int { return s.used }

// Reachable is called when a server that is asked has answered, or cannot be reached.
func (s *Servers) Reachable(server int, reachable bool) {
	if server < s.asked {
		s.states[server].lost = !reachable
		s.decide()
	}
}

// Sent is called when a server that is asked has sent something, or it has become clear
// what it does not have.
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

// usable reports whether a server is to be used rather than any behind it.
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

// forget stops asking a server and all behind it.
func (s *Servers) forget(from int) {
	for i := from; i < s.asked; i++ {
		s.states[i] = serverState{}
	}
	s.asked = from
}
