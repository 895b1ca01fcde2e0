// Package inorder finds the elements of a list in another list that is nearly in the same order, as
// an update and the one before are.
package inorder

// Search finds elements in a list. The zero value begins at the first.
type Search struct {
	next   int // index of the element after the last one that was found
	misses int // since an element was found
}

const (
	ahead = 16 // elements that may have been removed in a row
	most  = 64 // misses in a row after which the orders have nothing in common
)

// Find returns the index of the next element, of n, for which is returns true. It returns -1 if
// there is none near the one that was found before, and if too many were not found in a row.
func (s *Search) Find(n int, is func(i int) bool) int {
	if s.misses > most {
		return -1
	}
	for i := s.next; i < min(s.next+ahead, n); i++ {
		if is(i) {
			s.next, s.misses = i+1, 0
			return i
		}
	}
	// Each element that is not found moves next on by one: it may have replaced another. If it was
	// inserted, the next elements are before that.
	for i := min(s.next, n) - 1; i >= max(0, s.next-s.misses); i-- {
		if is(i) {
			s.next, s.misses = i+1, 0
			return i
		}
	}
	s.next++
	s.misses++
	return -1
}
