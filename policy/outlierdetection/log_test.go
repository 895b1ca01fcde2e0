package outlierdetection

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	core "github.com/understudy-lb/understudy/internal/core/outlierdetection"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var logged logs

func init() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, &logged, io.Discard)) }

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) wantLast(t *testing.T, want string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(l.buf.String()), "\n")
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, want) {
		t.Errorf("logged %q, want a line that ends with %q", last, want)
	}
}

func TestLogNamesPriority(t *testing.T) {
	inBubble(t, func(h *harness) {
		config := outlierscenario.Default()
		config.ConsecutiveFailuresEjection = &core.ConsecutiveFailuresEjection{Failures: 2, EnforcementPercentage: 100}
		config.MaxEjectionPercent, config.ReportEmptied = 100, true
		h.Update(config, []string{"a"})
		state := stateattr.SetLabels(resolver.State{Endpoints: endpointsOf("a")}, stateattr.Labels{Priority: "p0 us-east/a"})
		if err := h.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: configOf(config, h.builder.name), ResolverState: state}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			h.end("a", doneInfo(codes.Internal, true, true))
		}
		logged.wantLast(t, ": priority p0 us-east/a: calls to all of its endpoints fail with INTERNAL")
		time.Sleep(2 * config.Interval)
		logged.wantLast(t, ": priority p0 us-east/a: a few calls probe whether its endpoints have recovered")
		h.end("a", doneInfo(codes.OK, true, true))
		time.Sleep(2 * config.Interval)
		logged.wantLast(t, ": priority p0 us-east/a: some of its endpoints are no longer ejected")
	})
}
