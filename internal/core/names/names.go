// Package names combines the lookups of several names whose addresses form one answer: the names of
// a STRICT_DNS cluster, or the hosts of SRV records. Its types are not safe for concurrent use.
// Callers pass the current time.
//
//   - An answer waits until each name has a result, but no longer than Hold.
//   - A name whose lookup fails keeps its last addresses.
//   - A name also keeps the time at which its addresses were last known to be valid, so that the
//     addresses can expire.
//   - Before the first answer, the set reports an error if no lookup has succeeded. Later, it
//     reports an error if the last lookup of every name has failed; the last good answer then stays
//     in use.
package names

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Hold is how long an answer waits for names whose lookup has not ended. It is shorter than the
// failover timeout, the most that a channel waits for its first answer (docs/waits.md).
const Hold = 5 * time.Second

// Name is the state of one name of a Set.
type Name struct {
	Addresses []string
	Held
	Err error

	hasResult bool
}

// Held records when the addresses of a name were last known to be valid. Until is zero while the
// last lookup of the name has succeeded.
type Held struct{ Until time.Time }

// RecordFailure records a failed lookup at the time now.
func (h *Held) RecordFailure(now time.Time) {
	if h.Until.IsZero() {
		h.Until = now
	}
}

// Set is the state of several names whose addresses form one answer.
type Set struct {
	names       []Name
	hasLiterals bool // the answer also contains addresses that need no lookup, such as IP addresses

	pendingCount int // names whose first lookup has not ended
	failedCount  int // names whose last lookup has failed
	holdIsOver   bool
	hasAnswered  bool
}

// New returns a set in which no name has a result. The names may contain addresses from an earlier
// set. hasLiterals means that the answer also contains addresses that need no lookup.
func New(names []Name, hasLiterals bool) *Set {
	return &Set{names: names, hasLiterals: hasLiterals, pendingCount: len(names)}
}

// Found is called when a lookup of name i has returned addresses. It returns true if that changes
// the state of the name.
func (s *Set) Found(i int, addresses []string) bool {
	return s.record(i, Name{Addresses: addresses, hasResult: true})
}

// Failed is called when a lookup of name i has failed. It returns true if that changes the state of
// the name.
func (s *Set) Failed(i int, err error, now time.Time) bool {
	n := s.names[i]
	n.RecordFailure(now)
	n.Err, n.hasResult = err, true
	return s.record(i, n)
}

func (s *Set) record(i int, n Name) (changed bool) {
	last := s.names[i]
	s.names[i] = n
	if !last.hasResult {
		s.pendingCount--
	}
	if last.Err != nil {
		s.failedCount--
	}
	if n.Err != nil {
		s.failedCount++
	}
	return !last.equal(n)
}

func (n Name) equal(other Name) bool {
	// There is no need to compare Held: it changes only together with another field.
	same := n.hasResult == other.hasResult && slices.Equal(n.Addresses, other.Addresses)
	return same && (n.Err == nil) == (other.Err == nil) && (n.Err == nil || n.Err.Error() == other.Err.Error())
}

// Late is called when Hold is over. It returns true if some name has no result yet.
func (s *Set) Late() bool {
	s.holdIsOver = true
	return s.pendingCount > 0
}

// Ready is true when it is time to pass on an answer or an error. Before Late, each name needs a
// result; afterwards one is enough, or none with hasLiterals.
func (s *Set) Ready() bool {
	return s.pendingCount == 0 || s.holdIsOver && (s.pendingCount < len(s.names) || s.hasLiterals)
}

// Fails is true if an error is to be passed on instead of an answer. hasEndpoints means that the
// answer would have at least one endpoint.
func (s *Set) Fails(hasEndpoints bool) bool {
	anySuccess := s.hasLiterals || s.pendingCount+s.failedCount < len(s.names)
	if !hasEndpoints || !s.hasAnswered && !anySuccess || s.hasAnswered && s.failedCount == len(s.names) {
		return true
	}
	s.hasAnswered = true
	return false
}

// Names returns the names in the order that New received.
func (s *Set) Names() []Name { return s.names }

// Flaws describes the failed lookups. It returns "" if no lookup has failed. title returns the text
// that denotes name i in the description.
func (s *Set) Flaws(title func(i int) string) string {
	var flaws []string
	for i, n := range s.names {
		if n.Err != nil && len(flaws) < maxFlaws {
			flaws = append(flaws, title(i)+": "+n.Err.Error())
		}
	}
	return join(flaws, s.failedCount)
}

const maxFlaws = 4

// DescribeFailures combines the errors of several lookups, which may end in any order: it sorts the
// errors, and drops duplicates.
func DescribeFailures(flaws []error) error {
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
	return errors.New(join(texts[:min(len(texts), maxFlaws)], len(texts)))
}

func join(flaws []string, total int) string {
	if more := total - len(flaws); more > 0 {
		flaws = append(slices.Clip(flaws), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(flaws, "; ")
}
