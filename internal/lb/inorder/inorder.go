// Package inorder finds the elements of one list in another list that has nearly the same order,
// such as the previous version of it.
package inorder

// Search finds the elements of a list one after another. The zero value begins at the first
// element.
type Search struct {
	next   int // the index at which the next search begins
	misses int // number of consecutive searches without success
}

const (
	maxSkip   = 16 // number of consecutive elements that a search can skip
	maxMisses = 64 // after this many consecutive misses, all further searches return -1
)

// Find returns the index of the next element for which matches returns true, among n elements. It
// searches only near the last result, and returns -1 if no element there matches, or after too many
// consecutive searches without success.
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
	// Each unsuccessful search has advanced next by one, as if an element here had been replaced.
	// If one was added instead, we are too far ahead, so we also search before next.
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
