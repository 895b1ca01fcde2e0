package ads

// Servers decides to which management servers a target subscribes, and whose resources it uses (gRFC
// A71). They are in order of preference, and all resources in use come from one of them:
//
//	server 0              server 1   subscribed to  used
//	Waiting                          0              none
//	Waiting, unreachable  Waiting    0, 1           none
//	Waiting, unreachable  HasAll     0, 1           1
//	Waiting               HasAll     0, 1           1
//	HasAll                           0              0
//
// In the fourth row, gRFC A71 returns to server 0 with its first resource. We wait until no resource is
// missing and at least one is good: an incomplete server must not replace a working one.
type Servers struct {
	reachabilityOnly bool // as in gRFC A95, an unreachable server is enough to subscribe to the next one

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
