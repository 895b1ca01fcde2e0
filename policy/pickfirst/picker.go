package pickfirst

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"

	"github.com/understudy-lb/understudy/internal/lb/shell"
)

var queue = base.NewErrPicker(balancer.ErrNoSubConnAvailable)

// failing returns a picker that fails calls with err. err must not contain a status error, which
// would also end wait-for-ready calls.
func failing(err error) balancer.Picker { return shell.Failing(err) }

// idlePicker makes calls wait. The first call makes the policy connect.
type idlePicker struct {
	policy *policy
	asked  atomic.Bool
}

// Pick queues a request to connect, because Pick itself must not block.
func (i *idlePicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	if !i.asked.Swap(true) {
		i.policy.serial.Enqueue(i.policy.exitIdle)
	}
	return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
}
