package outlierdetection

import (
	"testing"

	"google.golang.org/grpc/codes"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

// When all endpoints are ejected, the policy must report the status codes of their last failures:
// at most three, the most frequent first.
func TestTierHasStatusCodesOfFailures(t *testing.T) {
	inBubble(t, func(h *harness) {
		config := outlierscenario.Default()
		config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: 2, EnforcementPercentage: 100}
		config.MaxEjectionPercent, config.ReportEmptied = 100, true
		names := []string{"a", "b", "c", "d", "e", "f"}
		h.Update(config, names)
		last := map[string]codes.Code{"a": codes.Unavailable, "b": codes.Internal, "c": codes.Internal, "d": codes.DeadlineExceeded, "e": codes.DataLoss, "f": codes.Internal}
		for _, name := range names {
			h.end(name, doneInfo(codes.Unknown, true, true))
			h.end(name, doneInfo(last[name], true, true))
		}
		want := "INTERNAL, DEADLINE_EXCEEDED, UNAVAILABLE"
		if tier := shell.TierOf(h.cc.State().Picker); tier.Condition != shell.Emptied || tier.Failures != want {
			t.Errorf("the picker reports %+v, want Emptied with %s", tier, want)
		}
	})
}
