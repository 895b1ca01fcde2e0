package edf

import "math"

// Counts returns how often each of the first size entries was picked between two positions, given
// the total number of picks between them. Suppose that an entry of weight w goes from a Left of l
// to m over a time t. Then it was picked m - l + w·t times. We don't know t, but since the counts
// must add up to picks, we can solve for it:
//
//	weights 3 and 1, both Left 1, after 5 picks Left 1 and 2/3
//	    4 = 0 + 3·t,  1 = -1/3 + 1·t  for  t = (5 + 1/3) / 4
func (q *Sequence) Counts(from, to Position, size int, picks uint64) []uint64 {
	changes, sum := make([]float64, size), 0.0
	for i := range changes {
		changes[i] = (float64(q.leftOf(i, to)) - float64(q.leftOf(i, from))) / float64(Full)
		sum += changes[i]
	}
	elapsed := (float64(picks) - sum) / float64(q.period)
	counts := make([]uint64, size)
	for i := range counts {
		weight := float64(q.classes[q.classAt(i)].weight)
		counts[i] = uint64(max(0, math.Round(changes[i]+weight*elapsed)))
	}
	return counts
}
