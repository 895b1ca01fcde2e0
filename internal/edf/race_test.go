//go:build race

package edf_test

// With the race detector, rational numbers are very slow, and single-threaded tests gain
// nothing from it. So fewer sets are tested.
func init() { oracleShare = 10 }
