// Package names combines the lookups of several names whose addresses form one answer: the names of
// a STRICT_DNS cluster, or the hosts of SRV records. Its types are not safe for concurrent use.
// Callers pass the current time.
//
//   - An answer waits until each name has a result, but at most for Hold.
//   - A name whose lookup fails keeps its last addresses.
//   - A name also keeps the time at which its addresses were last known to be valid, so that
//     unconfirmed addresses expire.
//   - Before the first answer, the names fail if no lookup has succeeded. Later, they fail if the
//     last lookup of every name has failed; the last good answer then stays in use.
package names

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Hold is how long an answer waits for names whose lookup has not ended. It is shorter than the
// failover timeout, which limits a channel's wait for its first answer (docs/waits.md).
const Hold = 5 * time.Second

// Name is the state of one name of a Set.
type Name struct {
	Addresses []string
	Held
	Err error

	heard bool
}

// Held records when the addresses of a name were last known to be valid. Until is zero if they
// still are.
type Held struct{ Until time.Time }

// Lose records a failed lookup at the time now.
func (h *Held) Lose(now time.Time) {
	if h.Until.IsZero() {
		h.Until = now
	}
}

// Set is the state of several names whose addresses form one answer.
type Set struct {
	names  []Name
	beside bool // the answer also contains addresses without a name, such as those given literally

	unheard int
	flawed  int
	late    bool
	passed  bool
}

// New returns a set in which no name has a result. names may contain addresses from an earlier set.
// beside means that the answer also contains addresses without a name, which need no lookup.
func New(names []Name, beside bool) *Set {
	return &Set{names: names, beside: beside, unheard: len(names)}
}

// Found records the addresses of a name. It reports whether the state changed.
func (s *Set) Found(i int, addresses []string) bool {
	return s.hear(i, Name{Addresses: addresses, heard: true})
}

// Failed records a failed lookup. It reports whether the state changed.
func (s *Set) Failed(i int, err error, now time.Time) bool {
	n := s.names[i]
	n.Lose(now)
	n.Err, n.heard = err, true
	return s.hear(i, n)
}

func (s *Set) hear(i int, n Name) (news bool) {
	last := s.names[i]
	s.names[i] = n
	if !last.heard {
		s.unheard--
	}
	if last.Err != nil {
		s.flawed--
	}
	if n.Err != nil {
		s.flawed++
	}
	return !last.equal(n)
}

// equal does not compare Held, which follows from the other fields.
func (n Name) equal(other Name) bool {
	same := n.heard == other.heard && slices.Equal(n.Addresses, other.Addresses)
	return same && (n.Err == nil) == (other.Err == nil) && (n.Err == nil || n.Err.Error() == other.Err.Error())
}

// Late is called when Hold is over. It reports whether the lookup of any name has not ended.
func (s *Set) Late() bool {
	s.late = true
	return s.unheard > 0
}

// Ready reports whether it is time to pass on an answer or an error. Before Late, each name needs a
// result. After it, one result or one address without a name suffices.
func (s *Set) Ready() bool {
	return s.unheard == 0 || s.late && (s.unheard < len(s.names) || s.beside)
}

// Fails reports whether to pass on an error instead of an answer. some reports whether the answer
// would contain an endpoint.
func (s *Set) Fails(some bool) bool {
	well := s.beside || s.unheard+s.flawed < len(s.names)
	if !some || !s.passed && !well || s.passed && s.flawed == len(s.names) {
		return true
	}
	s.passed = true
	return false
}

// Names returns the names in the order that New received.
func (s *Set) Names() []Name { return s.names }

// Flaws describes the failed lookups, or is "" if there are none. called returns the text by which
// users know the name with index i.
func (s *Set) Flaws(called func(i int) string) string {
	var flaws []string
	for i, n := range s.names {
		if n.Err != nil && len(flaws) < mostFlaws {
			flaws = append(flaws, called(i)+": "+n.Err.Error())
		}
	}
	return join(flaws, s.flawed)
}

const mostFlaws = 4

// Flaws combines the errors of lookups. It sorts them, because lookups end in any order, and
// removes duplicates.
func Flaws(flaws []error) error {
	var texts []string
	for _, err := range flaws {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	switch texts = slices.Compact(texts); len(texts) {
	case 0:
		return nil
	case 1:
		return flaws[0]
	}
	return errors.New(join(texts[:min(len(texts), mostFlaws)], len(texts)))
}

func join(flaws []string, of int) string {
	if more := of - len(flaws); more > 0 {
		flaws = append(slices.Clip(flaws), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(flaws, "; ")
}
