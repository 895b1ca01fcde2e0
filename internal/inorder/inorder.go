// Package inorder finds the elements of a list in another list with nearly the same order, such as
// the previous version of the list.
package inorder

// Search finds elements of a list. The zero value begins at the first element.
type Search struct {
	next   int // index after the last element that was found
	misses int // number of failed searches since then
}

const (
	ahead = 16 // number of elements that may be removed in a row
	most  = 64 // after so many misses in a row, searches fail at once
)

// Find returns the index of the next element, out of n, for which is returns true. It searches only
// near the last result. It returns -1 if there is no such element near it, or after too many misses
// in a row.
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
	// A miss advances next by one, because the element may have replaced another. If it was
	// inserted instead, the next elements are before next.
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
