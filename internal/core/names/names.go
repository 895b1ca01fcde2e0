// Package names combines lookups of several names into a single answer. It's for the names of a
// STRICT_DNS cluster, or for the hosts of SRV records. The types in here aren't safe for concurrent
// use, and callers pass in the current time.
//
//   - The answer waits until every name has a result, but no longer than Hold.
//   - If a lookup fails, the name keeps its last addresses.
//   - For each name, we also remember when its addresses were last known to be valid, so that they can
//     expire.
//   - Before the first answer, we report an error if no lookup has succeeded. Later, we report one
//     when the last lookup of every name has failed. The last good answer stays in use then.
package names

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Hold is how long an answer waits for lookups that are still running. A channel won't wait for its
// first answer longer than the failover timeout, so Hold has to be shorter than that
// (docs/waits.md).
const Hold = 5 * time.Second

type Name struct {
	Addresses []string
	Held
	Err error

	hasResult bool
}

// Held remembers when a name's addresses were last known to be valid. Until is zero as long as the
// last lookup has succeeded.
type Held struct{ Until time.Time }

func (h *Held) RecordFailure(now time.Time) {
	if h.Until.IsZero() {
		h.Until = now
	}
}

type Set struct {
	names       []Name
	hasLiterals bool // there are also addresses that don't need a lookup, e.g. IP addresses

	pendingCount int
	failedCount  int
	holdIsOver   bool
	hasAnswered  bool
}

// New returns a set without any results, though the names may bring along addresses from an earlier
// set. hasLiterals means that the answer also contains addresses that don't need a lookup.
func New(names []Name, hasLiterals bool) *Set {
	return &Set{names: names, hasLiterals: hasLiterals, pendingCount: len(names)}
}

// Found records the addresses from a lookup of name i. It returns true if that changed anything.
func (s *Set) Found(i int, addresses []string) bool {
	return s.record(i, Name{Addresses: addresses, hasResult: true})
}

// Failed records that a lookup of name i failed. It returns true if that changed anything.
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
	// Held never changes on its own.
	same := n.hasResult == other.hasResult && slices.Equal(n.Addresses, other.Addresses)
	return same && (n.Err == nil) == (other.Err == nil) && (n.Err == nil || n.Err.Error() == other.Err.Error())
}

// Late is called when Hold is over. It returns true if we're still waiting for some names.
func (s *Set) Late() bool {
	s.holdIsOver = true
	return s.pendingCount > 0
}

// Ready returns true when it's time to pass on an answer or an error. Until Late is called, every
// name needs a result. After that, a single result will do, and with hasLiterals we don't even need
// that.
func (s *Set) Ready() bool {
	return s.pendingCount == 0 || s.holdIsOver && (s.pendingCount < len(s.names) || s.hasLiterals)
}

// Fails returns true if we should report an error instead of an answer. hasEndpoints says whether
// the answer would have any endpoints.
func (s *Set) Fails(hasEndpoints bool) bool {
	anySuccess := s.hasLiterals || s.pendingCount+s.failedCount < len(s.names)
	if !hasEndpoints || !s.hasAnswered && !anySuccess || s.hasAnswered && s.failedCount == len(s.names) {
		return true
	}
	s.hasAnswered = true
	return false
}

func (s *Set) Names() []Name { return s.names }

// Flaws describes the lookups that failed, or returns "" if there are none. title returns what to
// call name i.
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

// DescribeFailures combines errors of several lookups. Lookups may finish in any order, so we sort
// the errors and remove duplicates.
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
