package drop

import (
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/lb/shell"
)

type halfReadyPicker struct{ balancer.Picker }

func (halfReadyPicker) ReadyShare() float64 { return 0.5 }

func TestTierOfChildIsPassedOn(t *testing.T) {
	if got := shell.TierOf(&picker{child: halfReadyPicker{shell.Queue}}); got.ReadyShare != 0.5 {
		t.Errorf("the READY share of the policy is %v, want 0.5 as of the child", got.ReadyShare)
	}
}
