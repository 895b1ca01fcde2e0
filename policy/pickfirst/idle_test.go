package pickfirst

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/test/bufconn"
)

type fakeNetwork struct {
	mu     sync.Mutex
	server *bufconn.Listener // nil means that connections are refused
	dials  []time.Time
}

func (w *fakeNetwork) dial(ctx context.Context, _ string) (net.Conn, error) {
	w.mu.Lock()
	lis := w.server
	w.dials = append(w.dials, time.Now())
	w.mu.Unlock()
	if lis == nil {
		return nil, errors.New("wire is cut")
	}
	return lis.DialContext(ctx)
}

func (w *fakeNetwork) dialTimes() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dials
}

func (w *fakeNetwork) start() (down func()) {
	lis := bufconn.Listen(1 << 16)
	server, done := serve(lis)
	w.mu.Lock()
	w.server = lis
	w.mu.Unlock()
	return func() {
		server.Stop()
		<-done
		w.mu.Lock()
		w.server = nil
		w.mu.Unlock()
	}
}

func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// A channel that reaches no server must try again after 1 s, 1.6 s, 2.56 s and so on up to 2 min,
// each ±20 %.
func TestChannelBacksOffIndefinitely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeNetwork{}
		cc, s := dial(t, []string{"a"}, grpc.WithContextDialer(w.dial))
		for range 6 * 24 {
			if _, err := call(cc); err == nil || !strings.Contains(err.Error(), "wire is cut") {
				t.Fatalf("the call failed with %v, want wire is cut", err)
			}
			advance(10 * time.Minute)
		}
		times := w.dialTimes()
		want := time.Second
		for i := 1; i < len(times); i++ {
			gap := times[i].Sub(times[i-1])
			if gap < want*79/100 || gap > want*121/100 {
				t.Fatalf("attempt %d came %v after the last, want %v ±20 %%", i, gap, want)
			}
			want = min(want*16/10, 2*time.Minute)
		}
		if len(times) < 600 {
			t.Errorf("tried %d times in a day, want 600 or more", len(times))
		}
		defer w.start()()
		advance(3 * time.Minute)
		states, _ := s.published()
		if cc.GetState() != connectivity.Ready || strings.Count(states, "CONNECTING") != 1 {
			t.Errorf("the state is %v after %s, want READY after one CONNECTING", cc.GetState(), states)
		}
		cc.Close()
	})
}

// A channel that becomes idle closes its policy. This must end the connection attempts, or the
// connection. The next call builds another policy.
func TestChannelIdleTimeoutEndsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeNetwork{}
		cc, s := dial(t, []string{"a"}, grpc.WithContextDialer(w.dial))
		call(cc)
		advance(time.Hour)
		n := len(w.dialTimes())
		advance(24 * time.Hour)
		if _, closed := s.published(); closed != 1 || len(w.dialTimes()) != n || cc.GetState() != connectivity.Idle {
			t.Errorf("closed %d times, dialled %d times in a day, %v; want once, never, IDLE", closed, len(w.dialTimes())-n, cc.GetState())
		}
		defer w.start()()
		wantCall(t, cc, "bufconn")
		advance(time.Hour)
		if _, closed := s.published(); closed != 2 || cc.GetState() != connectivity.Idle {
			t.Errorf("closed %d times, %v; want twice, IDLE", closed, cc.GetState())
		}
		wantCall(t, cc, "bufconn")
		cc.Close()
	})
}

// A short connection is lost. The next call must make the channel reconnect without a backoff (gRFC
// A62).
func TestChannelReconnectsAfterShortConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeNetwork{}
		down := w.start()
		dials := 0
		dialAndCloseOnce := func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := w.dial(ctx, address)
			if dials++; err == nil && dials == 1 {
				time.AfterFunc(20*time.Millisecond, func() { conn.Close() })
			}
			return conn, err
		}
		cc, _ := dial(t, []string{"a"}, grpc.WithContextDialer(dialAndCloseOnce))
		start := time.Now()
		for range 20 {
			wantCall(t, cc, "bufconn")
			advance(30 * time.Millisecond)
		}
		if took := time.Since(start); took != 600*time.Millisecond || dials != 2 {
			t.Errorf("20 calls took %v and %d connections, want 600 ms and 2", took, dials)
		}
		cc.Close()
		down()
	})
}
