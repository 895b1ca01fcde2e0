package page

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/scripttest"
)

func TestClosedChannelsDoNotReplaceIdleOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true}}
		openChannel(t, s, newEndpoint(0, "us-east/a", "a", 1))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		open := func(name string) *grpc.ClientConn {
			other := &scripttest.Source{}
			cc := scripttest.Open(t, name, []discovery.Mechanism{{Source: other}}, nil, grpc.WithContextDialer(s.dial), grpc.WithIdleTimeout(time.Minute))
			other.Receiver.Update(flat.Answer(newEndpoint(0, "", "b", 1)))
			synctest.Wait()
			return cc
		}
		const others = 99 // with the channel of the test, 100: the limit of idle channels
		for i := range others {
			open(fmt.Sprintf("idle-%d-", i))
		}
		time.Sleep(2 * time.Minute)
		for i := range 101 {
			open(fmt.Sprint("closed-", i)).Close()
		}
		settle()
		page := get(t, "")
		for i := range others {
			if !strings.Contains(page, fmt.Sprintf("idle-%d-", i)) {
				t.Errorf("idle channel %d is gone", i)
			}
		}
		if !strings.Contains(page, t.Name()) || strings.Contains(page, "closed-") {
			t.Errorf("want only the idle channels:\n%.2000s", page)
		}
	})
}
