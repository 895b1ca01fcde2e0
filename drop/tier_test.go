package drop

import (
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/shell"
)

type half struct{ balancer.Picker }

func (half) ReadyPart() float64 { return 0.5 }

func TestTierOfChildIsPassedOn(t *testing.T) {
	if got := shell.TierOf(&picker{child: half{shell.Queue}}); got.ReadyPart != 0.5 {
		t.Errorf("the READY share of the policy is %v, want 0.5 as of the child", got.ReadyPart)
	}
}
