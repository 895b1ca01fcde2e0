package childlb

import "google.golang.org/grpc/balancer"

// failing is a picker with which all calls fail.
type failing struct{ err error }

// Failing returns a picker with which calls fail with err, and those that wait for
// ready wait. err must not be, or wrap, a status error, which would end those, too.
func Failing(err error) balancer.Picker { return &failing{err} }

// Pick fails.
func (f *failing) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, f.err
}

// Failure returns what calls fail with.
func (f *failing) Failure() error { return f.err }

// FailureOf returns the error that calls fail with that a picker is given, nil where
// the picker does not tell. It does not pick: a picker of somebody else's may connect
// or count when it is asked for a pick.
func FailureOf(picker balancer.Picker) error {
	if f, ok := picker.(interface{ Failure() error }); ok {
		return f.Failure()
	}
	return nil
}
