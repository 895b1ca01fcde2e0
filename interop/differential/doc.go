// Package differential compares understudy_priority, understudy_weighted_target and
// understudy_outlier_detection with the grpc-go policies that they replace. It uses the public
// balancer API, with child policies that report states on demand. The tests allow only the
// differences in docs/differences.md.
package differential
