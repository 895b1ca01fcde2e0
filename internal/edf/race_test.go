//go:build race

package edf_test

// Rational numbers are very slow with the race detector.
func init() { oracleShare = 10 }
