package ads

// Servers decides to which management servers a target subscribes, and which server's resources it
// uses (gRFC A71). The servers are in order of preference. All resources in use come from one
// server.
//
// The client is always subscribed to the first server. It also subscribes to the next server when
// the last server to which it is subscribed cannot be reached and has not sent all resources. When
// a server has sent all resources, the client uses it, and ends its subscriptions to all later
// servers.
//
// gRFC A71 returns to an earlier server when this server sends its first resource. Servers waits
// until no resource is missing and at least one resource is good, so that an incomplete server does
// not replace a working one.
type Servers struct {
	// reachabilityOnly selects the rule of gRFC A95: the client subscribes to the next server when the
	// last server is unreachable, even if no resource is missing.
	reachabilityOnly bool

	states     []serverState
	askedCount int
	used       int
}

type serverState struct {
	unreachable bool
	sent        Completeness
}

// Completeness describes which of the target's resources a server has sent.
type Completeness int

const (
	// Waiting means that at least one resource has not arrived yet.
	Waiting Completeness = iota
	// HasNone means that the server has none of the resources.
	HasNone
	// HasAll means that no resource is outstanding, and at least one resource is good.
	HasAll
)

// NewServers returns the state for count servers. The client subscribes only to the first one.
func NewServers(count int, reachabilityOnly bool) *Servers {
	return &Servers{reachabilityOnly: reachabilityOnly, states: make([]serverState, count), askedCount: 1, used: -1}
}

// SubscribedCount returns the number of servers to subscribe to, counted from the first.
func (s *Servers) SubscribedCount() int { return s.askedCount }

// Used returns the index of the server whose resources are used, or -1.
func (s *Servers) Used() int { return s.used }

// Reachable is called when a server has become reachable or unreachable.
func (s *Servers) Reachable(server int, reachable bool) {
	if server < s.askedCount {
		s.states[server].unreachable = !reachable
		s.update()
	}
}

// Sent is called when a server has sent resources, or when it is known not to have a resource.
func (s *Servers) Sent(server int, has Completeness) {
	if server < s.askedCount {
		s.states[server].sent = has
		s.update()
	}
}

func (s *Servers) update() {
	for i := range s.askedCount {
		if s.isUsable(i) {
			clear(s.states[i+1:])
			s.used, s.askedCount = i, i+1
			break
		}
	}
	last := s.states[s.askedCount-1]
	if last.unreachable && (last.sent == Waiting || s.reachabilityOnly) && s.askedCount < len(s.states) {
		s.askedCount++
	}
}

// isUsable reports whether the client can use server i, so that it does not need the later servers.
func (s *Servers) isUsable(i int) bool {
	switch state := s.states[i]; {
	case s.reachabilityOnly && state.unreachable:
		return false
	case state.sent == HasNone:
		return s.used < 0 || s.used == i
	default:
		return state.sent == HasAll
	}
}
