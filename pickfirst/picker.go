package pickfirst

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"

	"github.com/understudy-lb/understudy/internal/shell"
)

// queue is a picker that makes calls wait.
var queue = base.NewErrPicker(balancer.ErrNoSubConnAvailable)

// failing returns a picker that fails calls with err. Wait-for-ready calls wait. err must not be or
// wrap a status error, which would fail these calls, too.
func failing(err error) balancer.Picker { return shell.Failing(err) }

// readyPicker always picks the same connection.
type readyPicker struct{ result balancer.PickResult }

func (r *readyPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return r.result, nil
}

// idlePicker makes calls wait. The first call makes the policy connect.
type idlePicker struct {
	policy *policy
	asked  atomic.Bool
}

// Pick requests a connection. It only queues an event, so that it does not block the call.
func (i *idlePicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	if !i.asked.Swap(true) {
		i.policy.serial.Enqueue(i.policy.exitIdle)
	}
	return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
}
