package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	understudy "github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

// tiers is a channel with outlierDetection to two tiers of two backends each, "near" and
// "far".
type tiers struct {
	near [2]*server
	cc   *grpc.ClientConn
}

func startTiers(t *testing.T) *tiers {
	t.Helper()
	var text strings.Builder
	text.WriteString("cluster_name: e2e\nendpoints:\n")
	tr := &tiers{}
	for priority, name := range []string{"near", "far"} {
		fmt.Fprintf(&text, "- priority: %d\n  locality: {region: %s}\n  load_balancing_weight: 1\n  lb_endpoints:\n", priority, name)
		for i := range 2 {
			s := startServer(t, name, nil)
			if priority == 0 {
				tr.near[i] = s
			}
			host, port, _ := strings.Cut(s.address, ":")
			fmt.Fprintf(&text, "  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", host, port)
		}
	}
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tr.cc = newClient(t, "file://"+path, understudy.With(discovery.WithOutlierDetection()))
	return tr
}

// until makes 200 calls a second, each with a deadline of 1 s, until one of the name
// answers, and returns how long that took. The calls before it end with one of codes.
func (tr *tiers) until(t *testing.T, name string, within time.Duration, codes ...codes.Code) time.Duration {
	t.Helper()
	type ended struct {
		name string
		err  error
	}
	results := make(chan ended, 10_000)
	begin := time.Now()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for calls := 0; ; {
		select {
		case <-ticks.C:
			calls++
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				got, err := who(ctx, tr.cc)
				results <- ended{got.name, err}
			}()
		case r := <-results:
			calls--
			if r.err != nil && !strings.Contains(fmt.Sprint(codes), status.Code(r.err).String()) {
				t.Errorf("a call ended with %v, want one of %v", r.err, codes)
			}
			took := time.Since(begin)
			if r.name == name || took > within {
				for range calls {
					<-results
				}
				if took > within {
					t.Errorf("no answer of %s within %v", name, within)
				}
				return took
			}
		}
	}
}

// A tier whose backends answer with errors: the next one answers within a second.
func TestATierThatAnswersWithErrorsFailsOver(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{codes.Unavailable, codes.Internal} {
		tr := startTiers(t)
		tr.until(t, "near", 5*time.Second)
		for _, s := range tr.near {
			s.err = status.Error(code, "broken")
			s.failures.Store(1 << 40)
		}
		t.Logf("%v: the next tier answered after %v", code, tr.until(t, "far", time.Second, code))
	}
}

// A tier whose backends hang, under calls with a deadline of 1 s: the next one answers
// within 2 s. Once they answer again, a call that is tried there shows it, within two
// intervals. (That all calls come back then is tested where time passes at once.)
func TestATierThatHangsFailsOverAndComesBack(t *testing.T) {
	t.Parallel()
	tr := startTiers(t)
	tr.until(t, "near", 5*time.Second)
	for _, s := range tr.near {
		s.hangs.Store(true)
	}
	t.Logf("the next tier answered after %v", tr.until(t, "far", 2*time.Second, codes.DeadlineExceeded))
	for _, s := range tr.near {
		s.hangs.Store(false)
	}
	t.Logf("a call is answered there again after %v", tr.until(t, "near", 20*time.Second+time.Second, codes.DeadlineExceeded))
}
