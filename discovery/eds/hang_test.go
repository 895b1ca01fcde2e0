package eds

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// A channel becomes active again while its management server hangs. Its first call must wait only
// about two seconds.
func TestAServerThatHangsAfterIdleness(t *testing.T) {
	for _, path := range []string{"/a", "/shop?cds=true"} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			defer s.end()
			s.start(server, adstest.NewCatalogue(shopOf("10.1", "a")...).Serve)
			b := s.builder()
			closeIt := s.open(b, "eds://"+server+path)
			known := s.saw()
			closeIt()
			s.stop(server)
			s.start(server, (*adstest.Stream).Drain)
			for range 3 {
				time.Sleep(10 * time.Minute)
				closeIt = s.open(b, "eds://"+server+path)
				time.Sleep(2200 * time.Millisecond)
				s.expect(known)
				time.Sleep(time.Minute)
				s.expect("")
				closeIt()
			}
		})
	}
}
