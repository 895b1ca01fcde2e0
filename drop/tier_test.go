package drop

import (
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/shell"
)

// half is a picker of a child half of which is READY.
type half struct{ balancer.Picker }

func (half) ReadyPart() float64 { return 0.5 }

// What a child says of its endpoints reaches the parent, also while calls are dropped.
func TestWhatTheChildSaysIsHandedThrough(t *testing.T) {
	if got := shell.TierOf(&picker{child: half{shell.Queue}}); got.ReadyPart != 0.5 {
		t.Errorf("half of the child is READY, the parent hears of %v", got.ReadyPart)
	}
}
