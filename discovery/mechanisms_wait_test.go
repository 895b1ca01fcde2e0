package discovery_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// waitingSource is a source that answers once, on another goroutine. Its Close waits for this
// goroutine, like the Close of a gRPC resolver.
type waitingSource struct {
	sleep           func()
	done            chan struct{}
	closing, closed atomic.Bool
}

func (*waitingSource) Check(bool) error { return nil }

func (w *waitingSource) Start(to *discovery.Receiver) (discovery.Started, error) {
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		w.sleep()
		_ = to.Update(discovery.Answer{Resolved: stateOf("10.0.0.1:1").Endpoints})
	}()
	return discovery.Started{Close: func() {
		w.closing.Store(true)
		<-w.done
		w.closed.Store(true)
	}}, nil
}

// A source is replaced while its answer updates the channel, which takes a minute. Close of the
// source waits for the update, so Close must not be called with a lock that the update needs. A
// deadlock would fail the synctest bubble.
func TestMechanismReplacedWhileItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListLab(t)
		l.cc.onUpdate = func(resolver.State) { time.Sleep(time.Minute) }
		source := &waitingSource{sleep: func() { time.Sleep(time.Second) }}
		l.listSource.raw.Mechanisms([]discovery.Mechanism{{Name: "a", Source: source}})
		time.Sleep(2 * time.Second)
		_ = l.listSource.raw.Update(flat.Answer(flat.Endpoint{Address: "10.0.0.2:1"}))
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if !source.closing.Load() || source.closed.Load() {
			t.Errorf("during the update with the replacement, Close of the source was called: %v, has returned: %v; want only the call", source.closing.Load(), source.closed.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !source.closed.Load() {
			t.Error("Close of the source does not return after the channel has accepted the answer")
		}
		l.wantUpdates("state 10.0.0.1:1[\"a\" \"/\"]\nstate 10.0.0.2:1[\"child0\" \"/\"]")
	})
}

// Answers with invalid UTF-8 cannot be compared, so each of them must count as a new answer.
func TestAnswersWithInvalidUTF8(t *testing.T) {
	cc, s := &channel{}, &fakeSource{}
	r := build(t, newSourceBuilder(s), cc)
	defer r.Close()
	for i := range 3 {
		address := fmt.Sprintf("10.0.0.%d:1", i)
		answer := flat.Answer(flat.Endpoint{Address: address})
		answer.Service = "caf\xe9"
		if err := s.Update(answer); err != nil {
			t.Fatal(err)
		}
		if got, want := cc.take(), fmt.Sprintf(`state %s["child0" "/"]`, address); got != want {
			t.Errorf("channel saw %q, want %q", got, want)
		}
	}
}
