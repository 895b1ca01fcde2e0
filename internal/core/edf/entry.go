// Package edf computes the exact earliest-deadline-first sequence of gRFC A34 for any weights,
// including how ties are broken. It has no goroutines, locks or clock. Handing the picks out to
// goroutines is the job of package internal/lb/edf.
//
// # Time
//
// Deadlines are integers. We first divide the weights by their greatest common divisor. The
// sequence then repeats after a time of 1, which we represent as 2^62 units. An entry of weight w
// has its deadlines at ceil(k · 2^62 / w) for k = 1, 2, and so on. Since the weights add up to less
// than 2^32, the product of two weights can't exceed 2^62, and rounding never changes the order:
// different fractions k/w get different deadlines, and equal fractions get equal ones. We store
// times modulo 2^64, i.e. four periods.
//
// # Stretches
//
// There is no queue, because we can compute any stretch of the sequence directly. Entries with the
// same weight and the same Left form a class, and a class has a single progression of deadlines. To
// compute a stretch, we sort the deadlines of all classes that fall into a span of time, and then
// replace each deadline by the members of its class. If the period is short, we keep it and reuse
// it:
//
//	weights 3 1 3  ->  0 2 0 2 0 1 2, repeated
package edf

type Entry struct {
	// Weight is how often the entry is picked per period, which has as many picks as the weights
	// add up to. 0 counts as 1. All weights together must stay below 2^32.
	Weight uint32
	// Left says when the entry's first pick is due, as a fraction of its interval. 0 counts as
	// Full.
	Left Left
}
