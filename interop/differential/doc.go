// Package differential compares understudy_priority, understudy_weighted_target and
// understudy_outlier_detection with the grpc-go policies that they replace, through the public
// balancer API, over children that report on command. The intended differences are listed in
// docs/differences.md; the tests verify that list exactly.
package differential
