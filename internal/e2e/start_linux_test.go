package e2e

import (
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
)

// A client starts with 150 calls a second while the process of its first priority is stopped, so that
// connections to it are accepted and nothing answers. Calls wait for the failover timeout, and none
// is lost.
func TestStartWhileFirstPriorityHangs(t *testing.T) {
	t.Parallel()
	near, far := startBackendProcess(t, "near"), startBackendProcess(t, "far")
	near.signal(t, syscall.SIGSTOP)
	defer near.signal(t, syscall.SIGCONT)
	f := startFlowOf(t, startRecommended(t, near.address, far.address), 10*time.Second, time.Second/150)
	began := time.Now()
	first := f.await(t, 0, "was answered by the next priority", answeredBy("far"))
	f.awaitConsecutive(t, "were answered by the next priority", answeredBy("far"))
	f.stop()
	calls, _ := f.since(0)
	for _, c := range calls {
		if c.err != nil {
			t.Fatalf("a call failed: %v; %s", c.err, summary(calls))
		}
	}
	waited := first.end.Sub(began)
	t.Logf("no answer for %v", waited.Round(10*time.Millisecond))
	most := failoverTimeout + slack
	if *timed {
		most = 2500 * time.Millisecond
	}
	if waited < failoverTimeout-100*time.Millisecond || waited > most {
		t.Errorf("no answer for %v, want at most %v", waited, most)
	}
}

func (b *backendProcess) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := b.process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func startRecommended(t *testing.T, near, far string) *grpc.ClientConn {
	t.Helper()
	cc, err := understudy.NewClient("failover:///"+near+","+far, understudy.Recommended(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}
