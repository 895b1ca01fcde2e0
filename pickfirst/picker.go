package pickfirst

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"

	"github.com/understudy-lb/understudy/internal/shell"
)

// queue makes calls wait.
var queue = base.NewErrPicker(balancer.ErrNoSubConnAvailable)

// failing fails calls with err; those that wait for ready wait. err must not hold a
// status, which would end those, too, so errors from elsewhere are not wrapped.
func failing(err error) balancer.Picker { return shell.Failing(err) }

// readyPicker picks the one connection. What it returns is made once.
type readyPicker struct{ result balancer.PickResult }

// Pick picks the connection.
func (r *readyPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return r.result, nil
}

// idlePicker makes calls wait, and the first of them makes the policy connect.
type idlePicker struct {
	policy *policy
	asked  atomic.Bool
}

// Pick asks for a connection. It only queues: a call is not to wait for that.
func (i *idlePicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	if !i.asked.Swap(true) {
		i.policy.serial.Enqueue(i.policy.exitIdle)
	}
	return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
}
