//go:build race

package edf_test

// With the race detector, fewer sets are compared, because rational numbers are then very slow.
func init() { oracleShare = 10 }
