// Package inorder finds the elements of one list in another that has nearly the same order, such as
// its previous version.
package inorder

// Search finds the elements of a list one after another. The zero value starts at the first one.
type Search struct {
	next   int
	misses int // consecutive searches without a match
}

const (
	maxSkip   = 16 // a search looks this far ahead
	maxMisses = 64 // with more misses in a row, we give up for good
)

// Find returns the index of the next of n elements for which matches returns true. It only looks
// close to the last result. If there's no match, or there have been too many misses in a row, it
// returns -1.
func (s *Search) Find(n int, matches func(i int) bool) int {
	if s.misses > maxMisses {
		return -1
	}
	for i := s.next; i < min(s.next+maxSkip, n); i++ {
		if matches(i) {
			s.next, s.misses = i+1, 0
			return i
		}
	}
	// Every miss has moved next ahead by one, as if the element had been replaced. If elements were
	// added instead, we've gone too far, so look before next as well.
	for i := min(s.next, n) - 1; i >= max(0, s.next-s.misses); i-- {
		if matches(i) {
			s.next, s.misses = i+1, 0
			return i
		}
	}
	s.next++
	s.misses++
	return -1
}
