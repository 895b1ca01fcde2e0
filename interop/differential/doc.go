// Package differential compares understudy_priority, understudy_weighted_target and
// understudy_outlier_detection with the policies of grpc-go that they stand in for,
// through the public balancer API, over children that report on command. Where the two
// are meant to differ is listed in docs/differences.md; the tests hold them to exactly
// that list.
package differential
