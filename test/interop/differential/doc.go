// Package differential compares understudy_priority, understudy_weighted_target and
// understudy_outlier_detection with the grpc-go policies they replace. It only uses the public
// balancer API, with child policies that report any state we ask for. Differences are only allowed
// if they're listed in docs/differences.md.
package differential
