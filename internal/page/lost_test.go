package page

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

func expectAge(t *testing.T, what string, at *time.Time, from, to time.Duration) {
	t.Helper()
	if at == nil || time.Since(*at) < from || time.Since(*at) > to {
		t.Errorf("%s is %v, want %v to %v ago", what, at, from, to)
	}
}

// A source fails after it has sent an answer or a list of discovery mechanisms. The page must show
// the failure, and that the answer or list stays in use.
func TestPageShowsWhatStaysInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true}}
		openChannel(t, s)
		answer := flat.Answer(newEndpoint(0, "us-east/a", "a", 1))
		answer.Version = "7"
		s.Receiver.Update(answer)
		time.Sleep(10 * time.Second)
		s.Receiver.Fail(errors.New("shop.yaml: no such file or directory"))
		time.Sleep(12 * time.Second)
		s.Receiver.Fail(errors.New("shop.yaml:3:1: want a list"))
		time.Sleep(12 * time.Second)
		c, page := channel(t)
		expectAge(t, "failing since", c.Sources[0].ErrorSince, 24*time.Second, 24*time.Second)
		expectAge(t, "confirmed", c.Sources[0].Confirmed, 24*time.Second, 24*time.Second)
		wantTexts(t, page, "Source story has been failing for 24 s; the endpoints of version 7, confirmed 24 s ago, stay in use: shop.yaml:3:1: want a list")
		mechanism := &fakeSource{}
		s.Receiver.Mechanisms([]discovery.Mechanism{{Name: "dns", Source: mechanism}})
		mechanism.Receiver.Update(flat.Answer(newEndpoint(0, "us-east/a", "a", 1)))
		settle()
		if c, _ := channel(t); len(c.Sources) != 1 || c.Sources[0].Name != "dns" || c.Sources[0].Error != "" {
			t.Errorf("the sources are %+v, want dns without an error", c.Sources)
		}
		s.Receiver.Fail(errors.New("shop.yaml: permission denied"))
		time.Sleep(5 * time.Second)
		c, page = channel(t)
		if len(c.Sources) != 2 || c.Sources[0].Name != "story" || c.Sources[0].Error != "shop.yaml: permission denied" || c.Sources[1].Error != "" || c.State != "READY" {
			t.Errorf("the channel is %s, the sources are %+v", c.State, c.Sources)
		}
		wantTexts(t, page, "Source story has been failing for 5 s; the endpoints, confirmed 5 s ago, stay in use: shop.yaml: permission denied")
		failing := &fakeSource{}
		s.Receiver.Mechanisms([]discovery.Mechanism{{Name: "dns", Source: failing}})
		failing.Receiver.Fail(errors.New("bad cluster"))
		time.Sleep(7 * time.Second)
		_, page = channel(t)
		wantTexts(t, page, "Source dns has been failing for 7 s; the endpoints, confirmed 7 s ago, stay in use: bad cluster")
		failing.Receiver.Update(answer)
		failing.Receiver.Unconfirmed(errors.New("the server is away"), time.Now())
		time.Sleep(9 * time.Second)
		_, page = channel(t)
		wantTexts(t, page, "Source dns has been failing for 9 s; the endpoints of version 7, confirmed 9 s ago, stay in use: the server is away")
	})
}
