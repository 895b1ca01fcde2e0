//go:build race

package edf_test

// Fewer sets are compared, because rational numbers are very slow with the race detector.
func init() { oracleShare = 10 }
