// Package differential compares understudy_priority, understudy_weighted_target and
// understudy_outlier_detection with the grpc-go policies that they replace. It uses the public
// balancer API, and child policies that report the states that a test wants. docs/differences.md
// lists the differences that are intended, and the tests allow no others.
package differential
