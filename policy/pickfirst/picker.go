package pickfirst

import (
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"

	"github.com/understudy-lb/understudy/internal/lb/shell"
)

var queue = base.NewErrPicker(balancer.ErrNoSubConnAvailable)

// failing returns a picker that fails calls with err. err must not contain a status error, since
// that would also end calls that wait for ready.
func failing(err error) balancer.Picker { return shell.Failing(err) }

type idlePicker struct {
	policy *policy
	ask    sync.Once
}

// Pick must not block, so it only queues the request to connect.
func (i *idlePicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	i.ask.Do(func() { i.policy.serial.Enqueue(i.policy.exitIdle) })
	return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
}
