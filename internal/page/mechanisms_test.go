package page

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/scripttest"
)

// All sources fail. The page must show the error of each source. It must also show the start time
// of the process, so that a restart of the process is visible.
func TestFailingSourcesAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fakeSource{}, &fakeSource{}
		scripttest.Open(t, t.Name(), []discovery.Mechanism{{Name: "a.example.com", Source: a}, {Name: "b.example.com", Source: b}}, nil)
		a.Receiver.Fail(errors.New("no such host"))
		synctest.Wait()
		if c, page := channel(t); c.State != "CONNECTING" || len(c.Why) != 1 {
			t.Errorf("with one pending source the channel is %s, reasons %q:\n%s", c.State, c.Why, page)
		}
		b.Receiver.Fail(errors.New("timed out"))
		synctest.Wait()
		time.Sleep(time.Second)
		c, page := channel(t)
		wantTexts(t, page, "Calls fail.")
		if want := []string{"a.example.com: no such host", "b.example.com: timed out"}; !slices.Equal(c.Why, want) {
			t.Errorf("reasons are %q, want %q", c.Why, want)
		}
		if first, again := collect(query{}), collect(query{}); first.Started.IsZero() || !first.Started.Equal(again.Started) {
			t.Errorf("start times differ or are zero: %v, %v", first.Started, again.Started)
		}
	})
}

func TestPrioritiesAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last, first := &fakeSource{}, &fakeSource{} // last gets the higher priority, against the order of names
		scripttest.Open(t, t.Name(), []discovery.Mechanism{{Name: "z", Source: last}, {Name: "a", Source: first}}, nil, grpc.WithContextDialer(last.dial))
		for _, s := range []*fakeSource{last, first} {
			s.Receiver.Update(flat.Answer(newEndpoint(0, "us-east", "x", 1)))
		}
		settle()
		if c, _ := channel(t); len(c.Why) != 2 || len(c.Tree.Children) != 2 || !strings.HasPrefix(c.Tree.Children[0].title(), "p0 z") {
			t.Errorf("the first priority is %q, reasons %q; want p0 z and two reasons", c.Tree.Children[0].title(), c.Why)
		}
	})
}
