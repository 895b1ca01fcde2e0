package discovery_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

type countedSource struct {
	fakeSource
	starts, resolveNows int
	endpointsFailed     int
}

func (s *countedSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	s.starts++
	started, err := s.fakeSource.Start(r)
	started.ResolveNow = func() { s.resolveNows++ }
	started.EndpointsFailed = func() { s.endpointsFailed++ }
	return started, err
}

type sharedLab struct {
	*countedSource
	t    *testing.T
	open func() (*channel, resolver.Resolver)
}

func runShared(t *testing.T, linger time.Duration, f func(*sharedLab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &countedSource{}
		b := newSourceBuilder(discovery.Shared(t.Name(), linger, s))
		f(&sharedLab{s, t, func() (*channel, resolver.Resolver) {
			cc := &channel{}
			return cc, build(t, b, cc)
		}})
		time.Sleep(linger)
		synctest.Wait()
		if s.starts != s.closeCount {
			t.Errorf("it was started %d times, and closed %d times", s.starts, s.closeCount)
		}
	})
}

func (s *sharedLab) wantUpdates(cc *channel, want string) {
	s.t.Helper()
	synctest.Wait()
	if got := cc.take(); got != want {
		s.t.Errorf("channel saw %q, want %q", got, want)
	}
}

const (
	state1 = `state 10.0.0.1:1["child0" "/"]`
	state2 = `state 10.0.0.2:1["child0" "/"]`
)

// Channels with the same key must share one source. A channel that is opened later must have the
// current answer when Build returns.
func TestSharedSourceStartsOnce(t *testing.T) {
	runShared(t, 0, func(s *sharedLab) {
		a, ra := s.open()
		s.sendAddresses("10.0.0.1:1")
		s.wantUpdates(a, state1)
		b, rb := s.open()
		if got := b.take(); got != state1 {
			t.Errorf("the late channel saw %q, want %q", got, state1)
		}
		s.sendAddresses("10.0.0.2:1")
		s.wantUpdates(a, state2)
		s.wantUpdates(b, state2)
		ra.Close()
		s.sendAddresses("10.0.0.1:1")
		s.wantUpdates(a, "")
		s.wantUpdates(b, state1)
		if s.closeCount > 0 {
			t.Error("it is closed while a channel uses it")
		}
		rb.Close()
		if s.starts != 1 {
			t.Errorf("it was started %d times", s.starts)
		}
	})
}

func TestSharedSourceLingers(t *testing.T) {
	runShared(t, 10*time.Second, func(s *sharedLab) {
		for range 3 {
			_, r := s.open()
			s.sendAddresses("10.0.0.1:1")
			r.Close()
			time.Sleep(10*time.Second - time.Nanosecond)
		}
		if s.starts != 1 || s.closeCount != 0 {
			t.Errorf("after less than 10 s it was started %d times, and closed %d times", s.starts, s.closeCount)
		}
		s.sendAddresses("10.0.0.2:1")
		cc, r := s.open()
		s.wantUpdates(cc, state2)
		r.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s.closeCount != 1 {
			t.Errorf("after 10 s it was closed %d times", s.closeCount)
		}
		_, r = s.open()
		r.Close()
		if s.starts != 2 {
			t.Errorf("then it was started %d times, want a second time", s.starts)
		}
	})
}

// A slow channel must not delay the other channels. When it is ready, it must get only the latest
// answer.
func TestSlowChannelDoesNotDelayOthers(t *testing.T) {
	runShared(t, 0, func(s *sharedLab) {
		slow, rs := s.open()
		slow.onUpdate = func(resolver.State) { time.Sleep(time.Minute) }
		quick, rq := s.open()
		for i := range 5 {
			began := time.Now()
			s.sendAddresses(fmt.Sprintf("10.0.0.%d:1", i))
			s.wantUpdates(quick, fmt.Sprintf(`state 10.0.0.%d:1["child0" "/"]`, i))
			if time.Since(began) > 0 {
				t.Errorf("answer %d took %v", i, time.Since(began))
			}
		}
		time.Sleep(2 * time.Minute)
		s.wantUpdates(slow, `state 10.0.0.0:1["child0" "/"]`+"\n"+`state 10.0.0.4:1["child0" "/"]`)
		rs.Close()
		rq.Close()
	})
}

// If a shared source cannot be started, the next channel must try again. A source that was not
// started must not be closed.
func TestSharedSourceStartError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &countedSource{}
		b := newSourceBuilder(discovery.Shared(t.Name(), time.Minute, s))
		s.startError = "no registry"
		for range 2 {
			if _, err := b.Build(target("x:///y"), &channel{}, resolver.BuildOptions{}); err == nil || !strings.Contains(err.Error(), s.startError) {
				t.Errorf("error %v, want %s", err, s.startError)
			}
		}
		time.Sleep(time.Hour)
		if s.starts != 2 || s.closeCount != 0 {
			t.Errorf("started %d times, closed %d times", s.starts, s.closeCount)
		}
	})
}

// When a channel rejects an answer, the source must get the error. Requests of the channels must
// reach the source.
func TestSharedSourceReturnsRejection(t *testing.T) {
	runShared(t, 0, func(s *sharedLab) {
		a, ra := s.open()
		_, rb := s.open()
		if err := s.Update(flat.Answer(flat.Endpoint{Address: "10.0.0.1:70000"})); err == nil || !strings.Contains(err.Error(), "70000") {
			t.Errorf("the source got %v, want the reason", err)
		}
		synctest.Wait()
		a.take()
		if err := s.sendAddresses("10.0.0.1:1"); err != nil {
			t.Error(err)
		}
		s.wantUpdates(a, state1)
		ra.ResolveNow(resolver.ResolveNowOptions{})
		synctest.Wait()
		if s.resolveNows != 1 || s.endpointsFailed != 1 {
			t.Errorf("it was asked %d times, and told %d times, want once each", s.resolveNows, s.endpointsFailed)
		}
		ra.Close()
		rb.Close()
	})
}

type blockingSource struct {
	fakeSource
	release chan struct{}
}

func (s *blockingSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	started, err := s.fakeSource.Start(r)
	started.ResolveNow = func() { <-s.release }
	return started, err
}

// A source that blocks in ResolveNow must not delay a channel that is opened later.
func TestSharedSourceBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &blockingSource{release: make(chan struct{})}
		shared := discovery.Shared(t.Name(), 0, s)
		first := startLogged(t, shared)
		_ = s.Update(discovery.Answer{Version: "1"})
		first.started.ResolveNow()
		synctest.Wait()
		release := time.AfterFunc(time.Minute, func() { close(s.release) })
		begin := time.Now()
		if got := startLogged(t, shared).take(); got != "answer1" || time.Since(begin) > 0 {
			t.Errorf("the later channel got %q after %v, want the answer at once", got, time.Since(begin))
		}
		if release.Stop() {
			close(s.release)
		}
	})
}

// Requests that arrive while a source blocks in ResolveNow must result in one call.
func TestSharedSourceGetsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &blockingSource{release: make(chan struct{})}
		user := startLogged(t, discovery.Shared(t.Name(), 0, s))
		for range 1000 {
			user.started.ResolveNow()
			synctest.Wait()
		}
		for range 2 { // the call that blocks, and one for the other requests
			s.release <- struct{}{}
			synctest.Wait()
		}
		select {
		case s.release <- struct{}{}:
			t.Error("the requests that arrived during a call caused more than one call")
		default:
		}
		close(s.release)
	})
}

// A channel is slow to apply an answer of a gRPC resolver. A channel that is opened meanwhile does not
// hang in Build, because calls would then outlast their deadlines, and gets the answer later.
func TestSharedSourceOpensBesideSlowChannel(t *testing.T) {
	runShared(t, 0, func(s *sharedLab) {
		release := make(chan struct{})
		slow, r := s.open()
		slow.onUpdate = func(resolver.State) { <-release }
		go s.raw.Update(discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.0.0.1:1"}}}}})
		time.Sleep(time.Second)
		opened := time.Now()
		time.AfterFunc(time.Minute, func() { close(release) })
		cc, r2 := s.open()
		if took := time.Since(opened); took > 0 {
			t.Errorf("Build took %v", took)
		}
		time.Sleep(time.Hour)
		s.wantUpdates(cc, `state 10.0.0.1:1["endpoints" "/"]`)
		r.Close()
		r2.Close()
	})
}
