package eds

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// longestPause is longer than the longest backoff between two connection attempts (120 s, plus the
// jitter).
const longestPause = 150 * time.Second

// shopOf returns the resources of an aggregate cluster. The aggregate contains the given clusters
// and, at the end, a cluster in DNS. The addresses of endpoints begin with prefix.
func shopOf(prefix string, clusters ...string) []proto.Message {
	all := []proto.Message{adstest.Aggregate("shop", append(clusters, "backup")...), adstest.LogicalDNS("backup", "backup.example.com", 443)}
	for i, c := range clusters {
		all = append(all, adstest.EDS(c), adstest.Cluster(c, prefix+".0."+string(rune('1'+i))+":1"))
	}
	return all
}

func TestServersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		defer s.end()
		first, other := adstest.NewCatalogue(shopOf("10.1", "a", "b")...), adstest.NewCatalogue(shopOf("10.2", "a")...)
		defer s.open(s.builder(), "eds://"+server+","+second+"/shop?cds=true")()
		if got := s.saw(); !strings.Contains(got, `error eds: no cluster "shop" from dns:///`+server) || !strings.Contains(got, "from dns:///"+second) {
			t.Errorf("channel saw %s, want a reason for each server", got)
		}
		s.start(second, other.Serve)
		time.Sleep(longestPause)
		s.expect(`10.2.0.1:1 a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]`)
		s.start(server, first.Serve)
		time.Sleep(longestPause)
		s.expect(`10.1.0.1:1 a/child0, 10.1.0.2:1 b/child0, 10.9.0.1:443 backup of ["a/child0","b/child0","backup"]`)
		s.stop(server)
		s.stop(second)
		time.Sleep(time.Hour)
		s.expect("")
		s.start(second, other.Serve)
		time.Sleep(longestPause)
		s.expect("") // no update, because the channel lacks no resource and therefore does not switch to the second server
		s.stop(second)
		first.Set(adstest.Cluster("a", "10.1.0.9:1"))
		s.start(server, first.Serve)
		time.Sleep(longestPause)
		s.expect(`10.1.0.9:1 a/child0, 10.1.0.2:1 b/child0, 10.9.0.1:443 backup of ["a/child0","b/child0","backup"]`)
	})
}

// The first server comes back with a cluster whose endpoints are in DNS. The channel then lacks no
// resource, so it must use this server again.
func TestServerIsBackWithANameAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		defer s.end()
		s.start(second, adstest.NewCatalogue(shopOf("10.2", "a")...).Serve)
		defer s.open(s.builder(), "eds://"+server+","+second+"/shop?cds=true")()
		s.expect(`10.2.0.1:1 a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]`)
		s.start(server, adstest.NewCatalogue(adstest.LogicalDNS("shop", "shop.example.com", 443)).Serve)
		time.Sleep(longestPause)
		s.expect(`10.9.0.1:443 shop of ["shop"]`)
	})
}

// Two management servers swap their addresses. The channel must use the one at the first address.
func TestServersExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		defer s.end()
		red, blue := adstest.NewCatalogue(shopOf("10.1", "a")...), adstest.NewCatalogue(shopOf("10.2", "a")...)
		s.start(server, red.Serve)
		s.start(second, blue.Serve)
		defer s.open(s.builder(), "eds://"+server+","+second+"/shop?cds=true")()
		s.expect(`10.1.0.1:1 a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]`)
		for range 3 {
			red, blue = blue, red
			s.stop(server)
			s.stop(second)
			time.Sleep(time.Second)
			s.start(second, blue.Serve)
			s.start(server, red.Serve)
			time.Sleep(longestPause)
			want := "10.1.0.1:1"
			if got := s.saw(); strings.Contains(got, "10.2.") {
				want = "10.2.0.1:1"
				if got != want+` a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]` {
					t.Errorf("channel saw %s", got)
				}
			} else if got != want+` a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]` {
				t.Errorf("channel saw %s, want the endpoints of the first address's server", got)
			}
		}
		if len(s.names) != 1 {
			t.Errorf("looked up %v, want the backup once", s.names)
		}
	})
}

// Two servers fail at random times. Their endpoints must never be mixed, a channel that has
// endpoints must never lose all of them, and in the end the first server must be used.
func TestServersAtRandom(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			s := newSite(t)
			defer s.end()
			addresses, prefixes := []string{server, second}, []string{"10.1", "10.2"}
			var catalogues []*adstest.Catalogue
			up := []bool{false, false}
			for i := range addresses {
				catalogues = append(catalogues, adstest.NewCatalogue(shopOf(prefixes[i], "a", "b")...))
			}
			target := fmt.Sprintf("eds://%s,%s/shop?cds=true&fallbackOnReachabilityOnly=%v", server, second, seed%2 == 1)
			defer s.open(s.builder(), target)()
			lists := [][]string{{"a"}, {"a", "b"}, {"b", "a"}, {"c"}, {"b", "c", "a"}}
			began := false
			for range 60 {
				i := r.IntN(2)
				switch {
				case r.IntN(3) == 0:
					catalogues[i].Set(shopOf(prefixes[i], lists[r.IntN(len(lists))]...)...)
				case up[i]:
					s.stop(addresses[i])
					up[i] = false
				default:
					s.start(addresses[i], catalogues[i].Serve)
					up[i] = true
				}
				time.Sleep(time.Duration(r.IntN(60_000)) * time.Millisecond)
				began = checkStates(t, seed, s.saw(), began)
			}
			for i, address := range addresses {
				if !up[i] {
					s.start(address, catalogues[i].Serve)
				}
			}
			time.Sleep(longestPause)
			began = checkStates(t, seed, s.saw(), began)
			catalogues[0].Set(shopOf("10.1", "last")...)
			if got := s.saw(); !strings.Contains(got, "10.1.0.1:1 last/child") || !began {
				t.Errorf("seed %d: at the end the channel saw\n%s\nwant the first server's endpoints", seed, got)
			}
		})
	}
}

// checkStates checks the recorded states. began means that the channel already had endpoints
// before. The result is true if it has had any by now.
func checkStates(t *testing.T, seed uint64, saw string, began bool) bool {
	t.Helper()
	for _, line := range slices.Collect(strings.Lines(saw)) {
		one, other := strings.Contains(line, "10.1.0."), strings.Contains(line, "10.2.0.")
		switch {
		case one && other:
			t.Errorf("seed %d: the endpoints of both servers are used: %s", seed, line)
		case began && !one && !other:
			t.Errorf("seed %d: the endpoints disappeared: %s", seed, line)
		}
		began = began || one || other
	}
	return began
}
