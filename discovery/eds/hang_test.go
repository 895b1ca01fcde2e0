package eds

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// If the management server hangs when a channel leaves idle mode, the first call must wait only
// about two seconds.
func TestServerHangsAfterIdle(t *testing.T) {
	for _, path := range []string{"/a", "/shop?cds=true"} {
		synctest.Test(t, func(t *testing.T) {
			s := newTestNetwork(t)
			s.start(server, adstest.NewCatalogue(shopResources("10.1", "a")...).Serve)
			b := s.builder()
			closeChannel := s.openChannel(b, "eds://"+server+path)
			lastGood := s.updates()
			closeChannel()
			s.stop(server)
			s.start(server, (*adstest.Stream).Drain)
			for range 3 {
				time.Sleep(10 * time.Minute)
				closeChannel = s.openChannel(b, "eds://"+server+path)
				time.Sleep(2200 * time.Millisecond)
				s.expect(lastGood)
				time.Sleep(time.Minute)
				s.expect("")
				closeChannel()
			}
		})
	}
}
