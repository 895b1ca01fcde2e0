// Package edf makes the earliest-deadline-first sequence of gRFC A34, exact, with its
// tie-break, for any weights. It has no goroutines, locks or clock; package internal/edf
// hands the picks out.
//
// # Time
//
// Deadlines are integers. After division by their greatest common divisor, the
// weights' sequence repeats after a time of 1, which is counted in 2^62 units, and
// the deadlines of an entry of weight w are ceil(k · 2^62 / w) for k = 1, 2, and so
// on. As weights sum to less than 2^32, the product of two is at most 2^62, hence
// fractions k/w that differ have different deadlines and equal ones equal: the order
// is the one of the fractions, for ever. Times are kept modulo 2^64, four periods.
//
// # Stretches
//
// Any stretch of the sequence can be made from nothing, so there is no queue. Entries of
// the same weight that wait for the same part of it are one class, with one progression
// of deadlines; the deadlines of all classes within a stretch of time are sorted, and each
// becomes the members of its class. A short period is kept and used again:
//
//	weights 3 1 3  ->  0 2 0 2 0 1 2, for ever
package edf

// Entry is one endpoint of a scheduler.
type Entry struct {
	// Weight is the number of its picks among as many picks as all weights sum to. 0
	// counts as 1. The caller keeps the sum of all weights below 2^32.
	Weight uint32
	// Left is the part of its first interval that it waits; 0 counts as Full.
	Left Left
}
