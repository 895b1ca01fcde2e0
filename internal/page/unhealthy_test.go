package page

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

func unhealthy(e flat.Endpoint) flat.Endpoint {
	e.Health = discovery.Unhealthy
	return e
}

// The unhealthy endpoints of the first priority become healthy. Calls must use the second priority
// until one of these endpoints is connected.
func TestCallsStayWhileHigherPriorityConnects(t *testing.T) {
	for _, query := range []string{"", "?ramp=30s"} {
		synctest.Test(t, func(t *testing.T) {
			s := &fakeSource{reachable: map[string]bool{"b": true}, query: query}
			near, far := newEndpoint(0, "us-east/a", "hang", 1), newEndpoint(1, "eu-west", "b", 1)
			cc := openChannel(t, s, unhealthy(near), far)
			expectCall := func() {
				t.Helper()
				start := time.Now()
				if err := call(t, cc); err != nil || time.Since(start) > 0 {
					t.Errorf("%q: a call took %v and ended with %v, want an answer from the lower priority at once", query, time.Since(start), err)
				}
			}
			expectCall()
			if err := s.Receiver.Update(flat.Answer(near, far)); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			expectCall()
			s.restore("hang")
			time.Sleep(40 * time.Second) // the first connection attempt fails, and the next one succeeds
			expectCall()
		})
	}
}

// No endpoint can take calls. The errors of calls and the page must contain the reason. If the
// source then fails, they must also contain the source's error.
func TestReasonWhenNoEndpointTakesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true}}
		cc := openChannel(t, s)
		expectReason := func(want string) {
			t.Helper()
			settle()
			if err := call(t, cc); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a call ended with %v, want %s", err, want)
			}
			_, page := channel(t)
			wantTexts(t, page, want)
		}
		if err := s.Receiver.Update(flat.Answer(unhealthy(newEndpoint(0, "us-east/a", "a", 1)), unhealthy(newEndpoint(0, "us-east/b", "b", 1)))); err != nil {
			t.Errorf("an answer with unhealthy endpoints was rejected: %v", err)
		}
		expectReason("no endpoint can take calls: 2 unhealthy")
		answer := flat.Answer(unhealthy(newEndpoint(0, "us-east/a", "a", 1)))
		answer.Why, answer.Notes = "all pods of shop are starting", []string{"a port has no effect"}
		if err := s.Receiver.Update(answer); err != nil {
			t.Error(err)
		}
		expectReason("all pods of shop are starting")
		expectReason("")
		if _, page := channel(t); !strings.Contains(page, "a port has no effect") {
			t.Error("the page does not show the note")
		}
		s.Receiver.Fail(errors.New("the registry is away"))
		expectReason("the registry is away; its last answer: all pods of shop are starting")
		if err := s.Receiver.Update(answer); err != nil {
			t.Error(err)
		}
		settle()
		if err := call(t, cc); err == nil || strings.Contains(err.Error(), "away") {
			t.Errorf("a call ended with %v, after the source recovered", err)
		}
		if err := s.Receiver.Update(flat.Answer(newEndpoint(0, "us-east/a", "a", 1))); err != nil {
			t.Error(err)
		}
		settle()
		if err := call(t, cc); err != nil {
			t.Errorf("a call ended with %v, after an endpoint became healthy", err)
		}
	})
}
