package ads

// Servers decides which management servers a target subscribes to, and whose resources it uses
// (gRFC A71). The servers are listed in order of preference. We never mix them: all resources in
// use come from the same server.
//
//	server 0              server 1   subscribed to  used
//	Waiting                          0              none
//	Waiting, unreachable  Waiting    0, 1           none
//	Waiting, unreachable  HasAll     0, 1           1
//	Waiting               HasAll     0, 1           1
//	HasAll                           0              0
//
// Note the fourth row. gRFC A71 would go back to server 0 as soon as it sends its first resource.
// We wait until it has sent all of them and at least one is good, because we don't want an
// incomplete server to replace a working one.
//
// Pass in only events of servers that we're subscribed to.
type Servers struct {
	reachabilityOnly bool // as in gRFC A95: move on to the next server as soon as one is unreachable

	states     []serverState
	askedCount int
	used       int
}

type serverState struct {
	unreachable bool
	sent        Completeness
}

type Completeness int

const (
	// Waiting means that we're still missing at least one resource.
	Waiting Completeness = iota
	HasNone
	// HasAll means that nothing is outstanding and at least one resource is good.
	HasAll
)

// NewServers returns the state for count servers, with only the first one subscribed.
func NewServers(count int, reachabilityOnly bool) *Servers {
	return &Servers{reachabilityOnly: reachabilityOnly, states: make([]serverState, count), askedCount: 1, used: -1}
}

// SubscribedCount returns how many servers we should be subscribed to, starting with the first.
func (s *Servers) SubscribedCount() int { return s.askedCount }

func (s *Servers) Used() int { return s.used }

func (s *Servers) Reachable(server int, reachable bool) {
	s.states[server].unreachable = !reachable
	s.update()
}

// Sent is called when a server sends resources, or when we find out that it doesn't have one.
func (s *Servers) Sent(server int, has Completeness) {
	s.states[server].sent = has
	s.update()
}

func (s *Servers) update() {
	for i := range s.askedCount {
		if s.isUsable(i) {
			clear(s.states[i+1:])
			s.used, s.askedCount = i, i+1
			return
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
