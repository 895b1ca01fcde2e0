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

// maxReconnectTime is longer than the longest backoff between two connection attempts, which is 120
// s plus jitter.
const maxReconnectTime = 150 * time.Second

// shopResources returns the resources of an aggregate cluster. The aggregate contains the given
// clusters and, as the last one, a cluster in DNS. The addresses of endpoints begin with prefix.
func shopResources(prefix string, clusters ...string) []proto.Message {
	resources := []proto.Message{adstest.Aggregate("shop", append(clusters, "backup")...), adstest.LogicalDNS("backup", "backup.example.com", 443)}
	for i, c := range clusters {
		resources = append(resources, adstest.EDS(c), adstest.Cluster(c, prefix+".0."+string(rune('1'+i))+":1"))
	}
	return resources
}

func TestServersFailAlternately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		first, secondCatalogue := adstest.NewCatalogue(shopResources("10.1", "a", "b")...), adstest.NewCatalogue(shopResources("10.2", "a")...)
		s.openChannel(s.builder(), "eds://"+server+","+second+"/shop?cds=true")
		if got := s.updates(); !strings.Contains(got, `error eds: no cluster "shop" from dns:///`+server) || !strings.Contains(got, "from dns:///"+second) {
			t.Errorf("channel saw %s, want a reason for each server", got)
		}
		s.start(second, secondCatalogue.Serve)
		time.Sleep(maxReconnectTime)
		s.expect(`10.2.0.1:1 a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]`)
		s.start(server, first.Serve)
		time.Sleep(maxReconnectTime)
		s.expect(`10.1.0.1:1 a/child0, 10.1.0.2:1 b/child0, 10.9.0.1:443 backup of ["a/child0","b/child0","backup"]`)
		s.stop(server)
		s.stop(second)
		time.Sleep(time.Hour)
		s.expect("")
		s.start(second, secondCatalogue.Serve)
		time.Sleep(maxReconnectTime)
		s.expect("") // the channel has all resources, so it does not use the second server
		s.stop(second)
		first.Set(adstest.Cluster("a", "10.1.0.9:1"))
		s.start(server, first.Serve)
		time.Sleep(maxReconnectTime)
		s.expect(`10.1.0.9:1 a/child0, 10.1.0.2:1 b/child0, 10.9.0.1:443 backup of ["a/child0","b/child0","backup"]`)
	})
}

// The first server becomes reachable again, with a cluster whose endpoints are in DNS. The channel
// then has all resources, so it must use this server again.
func TestServerReturnsWithDNSCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		s.start(second, adstest.NewCatalogue(shopResources("10.2", "a")...).Serve)
		s.openChannel(s.builder(), "eds://"+server+","+second+"/shop?cds=true")
		s.expect(`10.2.0.1:1 a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]`)
		s.start(server, adstest.NewCatalogue(adstest.LogicalDNS("shop", "shop.example.com", 443)).Serve)
		time.Sleep(maxReconnectTime)
		s.expect(`10.9.0.1:443 shop of ["shop"]`)
	})
}

// After two management servers have swapped their addresses, the channel must use the server at the
// first address.
func TestServersSwapAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestNetwork(t)
		red, blue := adstest.NewCatalogue(shopResources("10.1", "a")...), adstest.NewCatalogue(shopResources("10.2", "a")...)
		s.start(server, red.Serve)
		s.start(second, blue.Serve)
		s.openChannel(s.builder(), "eds://"+server+","+second+"/shop?cds=true")
		s.expect(`10.1.0.1:1 a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]`)
		for range 3 {
			red, blue = blue, red
			s.stop(server)
			s.stop(second)
			time.Sleep(time.Second)
			s.start(second, blue.Serve)
			s.start(server, red.Serve)
			time.Sleep(maxReconnectTime)
			want := "10.1.0.1:1"
			if got := s.updates(); strings.Contains(got, "10.2.") {
				want = "10.2.0.1:1"
				if got != want+` a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]` {
					t.Errorf("channel saw %s", got)
				}
			} else if got != want+` a/child0, 10.9.0.1:443 backup of ["a/child0","backup"]` {
				t.Errorf("channel saw %s, want the endpoints of the first address's server", got)
			}
		}
		if len(s.lookups) != 1 {
			t.Errorf("looked up %v, want the backup once", s.lookups)
		}
	})
}

// Two servers fail at random times. Their endpoints must never be mixed, a channel with endpoints
// must never lose all of them, and at the end the first server must be used.
func TestRandomServerFailures(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			s := newTestNetwork(t)
			addresses, prefixes := []string{server, second}, []string{"10.1", "10.2"}
			var catalogues []*adstest.Catalogue
			isUp := []bool{false, false}
			for i := range addresses {
				catalogues = append(catalogues, adstest.NewCatalogue(shopResources(prefixes[i], "a", "b")...))
			}
			target := fmt.Sprintf("eds://%s,%s/shop?cds=true&fallbackOnReachabilityOnly=%v", server, second, seed%2 == 1)
			s.openChannel(s.builder(), target)
			lists := [][]string{{"a"}, {"a", "b"}, {"b", "a"}, {"c"}, {"b", "c", "a"}}
			hadEndpoints := false
			for range 60 {
				i := r.IntN(2)
				switch {
				case r.IntN(3) == 0:
					catalogues[i].Set(shopResources(prefixes[i], lists[r.IntN(len(lists))]...)...)
				case isUp[i]:
					s.stop(addresses[i])
					isUp[i] = false
				default:
					s.start(addresses[i], catalogues[i].Serve)
					isUp[i] = true
				}
				time.Sleep(time.Duration(r.IntN(60_000)) * time.Millisecond)
				hadEndpoints = checkStates(t, seed, s.updates(), hadEndpoints)
			}
			for i, address := range addresses {
				if !isUp[i] {
					s.start(address, catalogues[i].Serve)
				}
			}
			time.Sleep(maxReconnectTime)
			hadEndpoints = checkStates(t, seed, s.updates(), hadEndpoints)
			catalogues[0].Set(shopResources("10.1", "last")...)
			if got := s.updates(); !strings.Contains(got, "10.1.0.1:1 last/child") || !hadEndpoints {
				t.Errorf("seed %d: at the end the channel saw\n%s\nwant the first server's endpoints", seed, got)
			}
		})
	}
}

// checkStates checks the recorded updates. hadEndpoints reports whether the channel already had
// endpoints before these updates. The result reports whether it has had endpoints by now.
func checkStates(t *testing.T, seed uint64, updates string, hadEndpoints bool) bool {
	t.Helper()
	for _, line := range slices.Collect(strings.Lines(updates)) {
		first, secondCatalogue := strings.Contains(line, "10.1.0."), strings.Contains(line, "10.2.0.")
		switch {
		case first && secondCatalogue:
			t.Errorf("seed %d: the endpoints of both servers are used: %s", seed, line)
		case hadEndpoints && !first && !secondCatalogue:
			t.Errorf("seed %d: the endpoints disappeared: %s", seed, line)
		}
		hadEndpoints = hadEndpoints || first || secondCatalogue
	}
	return hadEndpoints
}
