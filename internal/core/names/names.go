// Package names decides what is said of several names whose addresses together make one answer:
// those of a STRICT_DNS cluster, and the hosts of SRV records. It is given the time, and is not
// safe for concurrent use.
//
//   - An answer waits until something is heard of each name, and at most Hold.
//   - A name that cannot be looked up keeps the addresses that it had.
//   - Until when these held is remembered, so that what nobody confirms ends after a while.
//   - The names fail where none of them is well. At first that is so with none that was looked up,
//     later with none that was looked up last; then what was known stays in use.
package names

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Hold is how long an answer waits for names of which nothing is heard. It is shorter than the
// failover time, for which a channel waits for its first part (docs/waits.md).
const Hold = 5 * time.Second

// Name is what is known of a name.
type Name struct {
	Addresses []string // of its last answer
	Held
	Err error // why it could not be looked up last, nil if it could

	heard bool // of it, by this set
}

// Held is until when what is known of a name held: zero where it still does.
type Held struct{ Until time.Time }

// Lose notes that the name could not be looked up.
func (h *Held) Lose(now time.Time) {
	if h.Until.IsZero() {
		h.Until = now
	}
}

// Set is several names.
type Set struct {
	names  []Name
	beside bool // there are addresses beside them

	unheard int // of how many nothing is heard yet
	flawed  int // how many could not be looked up last
	late    bool
	passed  bool // an answer was
}

// New returns a set of names of which nothing is heard yet, with what is remembered of them.
// beside says that the answer has addresses beside theirs.
func New(names []Name, beside bool) *Set {
	return &Set{names: names, beside: beside, unheard: len(names)}
}

// Found notes the addresses of a name. It reports whether that is news.
func (s *Set) Found(i int, addresses []string) bool {
	return s.hear(i, Name{Addresses: addresses, heard: true})
}

// Failed notes that a name could not be looked up. It reports whether that is news.
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

// equal reports whether n and other say the same. Until when that held follows from the rest.
func (n Name) equal(other Name) bool {
	same := n.heard == other.heard && slices.Equal(n.Addresses, other.Addresses)
	return same && (n.Err == nil) == (other.Err == nil) && (n.Err == nil || n.Err.Error() == other.Err.Error())
}

// Late notes that Hold is over. It reports whether a name was waited for.
func (s *Set) Late() bool {
	s.late = true
	return s.unheard > 0
}

// Ready reports whether there is something to say: of each name something is heard, or Hold is
// over, and something is known.
func (s *Set) Ready() bool {
	return s.unheard == 0 || s.late && (s.unheard < len(s.names) || s.beside)
}

// Fails reports whether the names have failed, where else their answer is passed on. some says
// that the answer has an endpoint.
func (s *Set) Fails(some bool) bool {
	well := s.beside || s.unheard+s.flawed < len(s.names)
	if !some || !s.passed && !well || s.passed && s.flawed == len(s.names) {
		return true
	}
	s.passed = true
	return false
}

// Names returns what is known of the names, in their order.
func (s *Set) Names() []Name { return s.names }

// Flaws says what is wrong with those that could not be looked up, by what each is called: "" for
// nothing.
func (s *Set) Flaws(called func(i int) string) string {
	var flaws []string
	for i, n := range s.names {
		if n.Err != nil && len(flaws) < mostFlaws {
			flaws = append(flaws, called(i)+": "+n.Err.Error())
		}
	}
	return join(flaws, s.flawed)
}

// mostFlaws is how many a line lists.
const mostFlaws = 4

// Flaws makes one error of what is wrong with several names: each text once and in their order,
// since look-ups end in any order. It is nil for nothing.
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

// join lists flaws, of so many.
func join(flaws []string, of int) string {
	if more := of - len(flaws); more > 0 {
		flaws = append(slices.Clip(flaws), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(flaws, "; ")
}
