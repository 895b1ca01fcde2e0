// Package edf computes the exact earliest-deadline-first sequence of gRFC A34, including its
// tie-break, for any weights. It has no goroutines, locks or clock. Package internal/lb/edf
// distributes the picks to goroutines.
//
// # Time
//
// Deadlines are integers. We divide the weights by their greatest common divisor; the sequence then
// repeats after a time of 1, which we represent as 2^62 units. An entry of weight w has the
// deadlines ceil(k · 2^62 / w) for k = 1, 2, and so on. The weights sum to less than 2^32, so the
// product of two weights is at most 2^62. This keeps the order exact: different fractions k/w have
// different deadlines, and equal fractions have equal ones. Times are stored modulo 2^64, which is
// four periods.
//
// # Stretches
//
// We can compute any stretch of the sequence directly, so there is no queue. Entries with the same
// weight and the same Left form a class, which has a single progression of deadlines. For a
// stretch, we sort the deadlines of all classes within a span of time and replace each by the
// members of its class. A short period is kept and reused:
//
//	weights 3 1 3  ->  0 2 0 2 0 1 2, repeated
package edf

// Entry is one element of the sequence, for example an endpoint.
type Entry struct {
	// Weight is the number of times the entry is picked in a number of picks equal to the sum of
	// all weights. 0 counts as 1. The sum of all weights must be below 2^32.
	Weight uint32
	// Left is the fraction of an interval that must pass before the first pick of the entry. 0 counts
	// as Full.
	Left Left
}
