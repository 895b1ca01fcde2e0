package outlierdetection

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.Capture()

func wantLast(t *testing.T, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(logged.Take()), "\n")
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, want) {
		t.Errorf("logged %q, want a line that ends with %q", last, want)
	}
}

// An ejection is one log record, with the status code of the endpoint's last failure, and its end is
// another one.
func TestEjectionIsLogged(t *testing.T) {
	inBubble(t, func(h *harness) {
		config := outlierscenario.Default()
		config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: 2, EnforcementPercentage: 100}
		h.Update(config, []string{"a", "b"})
		h.end("a", doneInfo(codes.Unavailable, true, true))
		h.end("a", doneInfo(codes.Internal, true, true))
		wantLast(t, " outlier_detection: :///: endpoint a is ejected by consecutive_failures; its last failed call ended with INTERNAL")
		h.Advance(time.Minute)
		wantLast(t, " outlier_detection: :///: endpoint a is no longer ejected")
	})
}

// If many endpoints are ejected at once, twenty records in ten seconds are enough.
func TestFewEjectionsAreLogged(t *testing.T) {
	inBubble(t, func(h *harness) {
		config := outlierscenario.Default()
		config.MaxEjectionPercent = 100
		config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: 1, EnforcementPercentage: 100}
		var names []string
		for n := range 50 {
			names = append(names, fmt.Sprint("e", n))
		}
		h.Update(config, names)
		const mostReports = 20
		before := logged.Count("is ejected")
		for _, name := range names[:40] {
			h.end(name, doneInfo(codes.Unavailable, true, true))
		}
		if n := logged.Count("is ejected") - before; n != mostReports {
			t.Errorf("%d of 40 ejections are logged, want %d", n, mostReports)
		}
		h.Advance(time.Minute)
		if n := logged.Count("is no longer ejected"); n > before+mostReports {
			t.Errorf("%d ends of ejections are logged, and %d ejections", n, before+mostReports)
		}
	})
}
