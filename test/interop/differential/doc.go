// Package differential compares understudy_priority, understudy_weighted_target and
// understudy_outlier_detection with the grpc-go policies that they replace. The tests use the
// public balancer API, and child policies that report states on demand. The tests allow only the
// differences that docs/differences.md lists.
package differential
