//go:build race

package edf_test

// With the race detector, rational numbers are very slow.
func init() { oracleShare = 10 }
