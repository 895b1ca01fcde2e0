package debugpage

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

func ill(e flat.Endpoint) flat.Endpoint {
	e.Health = discovery.Unhealthy
	return e
}

// A priority's unhealthy endpoints become healthy. Calls must stay on the lower priority until one
// of these endpoints is connected.
func TestAZoneThatComesBackIsWaitedForElsewhere(t *testing.T) {
	for _, query := range []string{"", "?failbackDelay=30s"} {
		synctest.Test(t, func(t *testing.T) {
			s := &story{up: map[string]bool{"b": true}, query: query}
			near, far := at(0, "us-east/a", "hang", 1), at(1, "eu-west", "b", 1)
			cc := tell(t, s, ill(near), far)
			calls := func() {
				t.Helper()
				began := time.Now()
				if err := call(t, cc); err != nil || time.Since(began) > 0 {
					t.Errorf("%q: a call took %v and ended with %v, want an answer from the lower priority at once", query, time.Since(began), err)
				}
			}
			calls()
			if err := s.Receiver.Update(flat.Answer(near, far)); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			calls() // must stay on the lower priority while the higher one connects
			s.restore("hang")
			time.Sleep(40 * time.Second) // in this time, the first connection attempt fails and the next one succeeds
			calls()
		})
	}
}

// No endpoint can take calls. The errors of calls and the page must give the reason. If the source
// then fails, they must also give its error.
func TestWhyNothingCanTakeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{up: map[string]bool{"a": true}}
		cc := tell(t, s)
		sees := func(want string) {
			t.Helper()
			settle()
			if err := call(t, cc); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a call ended with %v, want %s", err, want)
			}
			_, page := channel(t)
			wantTexts(t, page, want)
		}
		if err := s.Receiver.Update(flat.Answer(ill(at(0, "us-east/a", "a", 1)), ill(at(0, "us-east/b", "b", 1)))); err != nil {
			t.Errorf("an answer with unhealthy endpoints was rejected: %v", err)
		}
		sees("no endpoint can take calls: 2 unhealthy")
		answer := flat.Answer(ill(at(0, "us-east/a", "a", 1)))
		answer.Why, answer.Notes = "all pods of shop are starting", []string{"a port has no effect"}
		if err := s.Receiver.Update(answer); err != nil {
			t.Error(err)
		}
		sees("all pods of shop are starting")
		sees("")
		if _, page := channel(t); !strings.Contains(page, "a port has no effect") {
			t.Error("the page does not show the note")
		}
		s.Receiver.Fail(errors.New("the registry is away"))
		sees("the registry is away; its last answer: all pods of shop are starting")
		if err := s.Receiver.Update(answer); err != nil {
			t.Error(err)
		}
		settle()
		if err := call(t, cc); err == nil || strings.Contains(err.Error(), "away") {
			t.Errorf("a call ended with %v, after the source recovered", err)
		}
		if err := s.Receiver.Update(flat.Answer(at(0, "us-east/a", "a", 1))); err != nil {
			t.Error(err)
		}
		settle()
		if err := call(t, cc); err != nil {
			t.Errorf("a call ended with %v, after an endpoint became healthy", err)
		}
	})
}
