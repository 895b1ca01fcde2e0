package page

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

func unhealthy(e flat.Endpoint) flat.Endpoint {
	e.Health = discovery.Unhealthy
	return e
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
