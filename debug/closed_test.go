package debug

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/toldtest"
)

// However many channels are closed, one that is idle stays on the page.
func TestClosedChannelsPushNoIdleOneOffThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{up: map[string]bool{"a": true}}
		tell(t, s, at(0, "us-east/a", "a", 1))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for i := range 101 {
			other := &toldtest.Source{}
			cc := toldtest.Open(t, fmt.Sprint("closed-", i), []discovery.Part{{Source: other}}, nil, grpc.WithContextDialer(s.dial))
			other.Receiver.Update(discovery.Answer{Cluster: discovery.Cluster(at(0, "", "b", 1))})
			synctest.Wait()
			cc.Close()
		}
		settle()
		page := get(t, "")
		if !strings.Contains(page, t.Name()) || strings.Contains(page, "closed-") {
			t.Errorf("want the idle channel alone:\n%.2000s", page)
		}
	})
}
