//go:build race

package edf_test

// The race detector makes rationals so slow, and tells nothing of one goroutine.
func init() { oracleShare = 10 }
