// Package inorder finds the elements of one list in another list that has nearly the same order,
// such as the previous version of it.
package inorder

// Search finds the elements of a list one after another. The zero value begins at the first
// element.
type Search struct {
	next   int // index after the last element that was found
	misses int // number of searches without success since then
}

const (
	ahead = 16 // number of consecutive elements that a search can skip
	most  = 64 // after this many consecutive misses, all further searches return -1
)

// Find returns the index of the next element for which is returns true; n is the number of
// elements. It searches only near the last result. It returns -1 if it finds none there, or after
// too many consecutive misses.
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
	// After a miss, next has been advanced by one, because the missing element may have replaced
	// another. If it was inserted instead, the elements to find are before next.
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
