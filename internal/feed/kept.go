package feed

import (
	"bytes"
	"container/list"
	"slices"
	"sync"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/resolver"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/topology"
)

// The limits on answers that are kept while channels are idle.
const (
	keptFor     = time.Hour // since the source last confirmed it
	keptEntries = 1000
	keptBytes   = 64 << 20
)

// said is an answer in the form that is compared and kept. A cluster is encoded, which
// takes a tenth of the memory.
type said struct {
	cluster   []byte // nil: endpoints count
	endpoints []resolver.Endpoint
	parts     []Mechanism // in their place, if there are any
	names     Names       // of which it is made, if that is known; they are not compared
	version   string      // for people; it is not compared
	unencoded bool        // the cluster cannot be encoded: it is neither compared nor kept
}

// sayingOf returns what an answer says.
func sayingOf(a topology.Answer) said {
	if a.Cluster == nil {
		s := said{endpoints: a.Endpoints, version: a.Version}
		if s.endpoints == nil {
			s.endpoints = []resolver.Endpoint{} // an empty answer that is meant
		}
		return s
	}
	encoded, err := Encoded(a.Cluster)
	if err != nil { // such as text that is not UTF-8
		return said{version: a.Version, unencoded: true}
	}
	return said{cluster: encoded, version: a.Version}
}

// clone returns a copy of s that the source cannot change.
func (s said) clone() said {
	if s.endpoints != nil {
		s.endpoints = append([]resolver.Endpoint{}, s.endpoints...)
	}
	for i := range s.endpoints {
		s.endpoints[i].Addresses = slices.Clone(s.endpoints[i].Addresses)
	}
	return s
}

// isEmpty returns whether s says nothing.
func (s said) isEmpty() bool { return s.cluster == nil && s.endpoints == nil && s.parts == nil }

// answer returns the answer that says s.
func (s said) answer() topology.Answer {
	if s.cluster == nil {
		return topology.Answer{Endpoints: s.endpoints}
	}
	cluster := &endpointv3.ClusterLoadAssignment{}
	if proto.Unmarshal(s.cluster, cluster) != nil {
		return topology.Answer{} // it was decoded before
	}
	return topology.Answer{Cluster: cluster}
}

// equal returns whether s and other are known to say the same.
func (s said) equal(other said) (same bool) {
	if s.unencoded || other.unencoded {
		return false
	}
	if s.cluster != nil || other.cluster != nil {
		return s.cluster != nil && other.cluster != nil && bytes.Equal(s.cluster, other.cluster)
	}
	// Attributes may hold values that == cannot compare.
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return slices.EqualFunc(s.endpoints, other.endpoints, func(a, b resolver.Endpoint) bool {
		return a.Attributes.Equal(b.Attributes) && slices.EqualFunc(a.Addresses, b.Addresses, resolver.Address.Equal)
	})
}

// size returns about how many bytes s takes, with the sources of parts that say how much
// they do. It is always the same.
func (s said) size() int {
	const endpoint, address = 100, 100
	n := len(s.cluster) + endpoint*(len(s.endpoints)+len(s.parts)) + s.names.size()
	for _, e := range s.endpoints {
		for _, a := range e.Addresses {
			n += address + len(a.Addr)
		}
	}
	for _, p := range s.parts {
		if sized, ok := p.Source.(interface{ Size() int }); ok {
			n += sized.Size()
		}
	}
	return n
}

// kept holds the last answers of the sources of this process.
var kept store

// store keeps answers by key. The zero value is empty. It is safe for concurrent use.
// It keeps nothing under the key nil.
type store struct {
	mu      sync.Mutex
	entries map[any]*list.Element
	order   list.List // of entry, the one confirmed last in front
	bytes   int
	atWork  map[any]int // how many sources are, by the key of their answers
}

type entry struct {
	key       any
	said      said
	confirmed time.Time
}

// begin notes that a source is at work whose answers are kept under key. It may say nothing
// for days: they do not expire before it ends.
func (s *store) begin(key any) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.atWork == nil {
		s.atWork = make(map[any]int)
	}
	s.atWork[key]++
}

// end notes that such a source has ended.
func (s *store) end(key any) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.atWork[key]--; s.atWork[key] <= 0 {
		delete(s.atWork, key)
	}
}

// put keeps an answer of the given time, in place of the one before. One that cannot be
// kept takes that one out: it would pass for confirmed.
func (s *store) put(key any, what said, at time.Time) {
	if key == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		s.entries = make(map[any]*list.Element)
	}
	if old, ok := s.entries[key]; ok {
		s.remove(old)
	}
	if what.unencoded || what.size() > keptBytes {
		return
	}
	s.entries[key] = s.order.PushFront(&entry{key, what, at})
	s.bytes += what.size()
	s.makeRoom(at)
}

// makeRoom forgets what has expired and what is too much, at first where no source is at work.
// The lock is held.
func (s *store) makeRoom(now time.Time) {
	for last := s.order.Back(); last != nil && (s.full() || expired(last, now)); {
		e := last
		last = last.Prev()
		if s.atWork[e.Value.(*entry).key] == 0 {
			s.remove(e)
		}
	}
	for s.full() {
		s.remove(s.order.Back())
	}
}

func (s *store) full() bool { return s.bytes > keptBytes || len(s.entries) > keptEntries }

// confirm notes that the answer under key still held at the given time.
func (s *store) confirm(key any, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[key]; ok && !at.Before(e.Value.(*entry).confirmed) {
		e.Value.(*entry).confirmed = at
		s.order.MoveToFront(e)
	}
}

// renew is confirm for an answer that may have had to make room. It is kept again where there
// is some. Its names may have changed.
func (s *store) renew(key any, what said, at time.Time) {
	s.mu.Lock()
	s.makeRoom(at)
	e, there := s.entries[key]
	if there {
		old := e.Value.(*entry)
		s.bytes -= old.said.size()
		if old.said.equal(what) {
			old.said.names = what.names.orLater(old.said.names, old.confirmed)
		} else {
			old.said.names = old.said.names.orLater(what.names, at)
		}
		s.bytes += old.said.size()
	}
	room := len(s.entries) < keptEntries && s.bytes+what.size() <= keptBytes
	s.mu.Unlock()
	if !there && room {
		s.put(key, what, at)
	} else {
		s.confirm(key, at)
	}
}

// get returns the answer under key, and how long ago it was confirmed.
func (s *store) get(key any, now time.Time) (said, time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok {
		return said{}, 0, false
	}
	if expired(e, now) {
		if s.atWork[key] == 0 { // else it may be confirmed yet
			s.remove(e)
		}
		return said{}, 0, false
	}
	kept := e.Value.(*entry)
	return kept.said, now.Sub(kept.confirmed), true
}

func expired(e *list.Element, now time.Time) bool {
	return now.Sub(e.Value.(*entry).confirmed) > keptFor
}

// remove forgets an entry. The lock is held.
func (s *store) remove(e *list.Element) {
	kept := s.order.Remove(e).(*entry)
	delete(s.entries, kept.key)
	s.bytes -= kept.said.size()
}
