package drop

import (
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/shell"
)

// half is the picker of a child whose READY share is 0.5.
type half struct{ balancer.Picker }

func (half) ReadyPart() float64 { return 0.5 }

// The picker passes on what the child's picker reports, also while it drops calls.
func TestWhatTheChildSaysIsHandedThrough(t *testing.T) {
	if got := shell.TierOf(&picker{child: half{shell.Queue}}); got.ReadyPart != 0.5 {
		t.Errorf("the READY share of the policy is %v, want 0.5 as of the child", got.ReadyPart)
	}
}
