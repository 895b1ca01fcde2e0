package sim

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

const recommended = "?overflow=true&warmStandby=1&failoverTimeout=2s&outlierDetection=true"

// changes is a log handler that counts the failovers and failbacks.
type changes struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (*changes) Enabled(context.Context, slog.Level) bool { return true }

func (c *changes) Handle(_ context.Context, r slog.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Message == "failover" || r.Message == "failback" {
		c.all = append(c.all, r.Message)
	}
	return nil
}

func (c *changes) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// For half a minute, the first priority is alternately down for 2 s and up for 2 s. No call fails.
// With the recommended options, the first priority gets at most a twentieth of the calls meanwhile,
// and nearly all calls again within a minute after it has become stable. Without these options, it
// gets all calls whenever it is up.
func TestFlappingPriority(t *testing.T) {
	if options, err := os.ReadFile("../../../docs/options.md"); err != nil || !strings.Contains(string(options), recommended) {
		t.Fatalf("docs/options.md does not recommend %s, %v", recommended, err)
	}
	for _, query := range []string{"", recommended} {
		t.Run("options "+query, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, meanwhile, back := flap(t, query)
				t.Logf("%d changes, %d %% of the calls meanwhile, back %v after it was stable", n, meanwhile, back)
				if query != "" && meanwhile > 5 || query == "" && meanwhile < 25 {
					t.Errorf("it gets %d %% of the calls meanwhile", meanwhile)
				}
				if back > time.Minute {
					t.Errorf("the calls were back %v after the priority was stable, want at most a minute", back)
				}
			})
		})
	}
}

// flap makes the first priority flap. It returns how often the priority in use changed, how many
// percent of the calls the first priority got meanwhile, and how long it took until, once stable, it
// got nearly all calls again.
func flap(t *testing.T, query string) (n, meanwhile int, back time.Duration) {
	network := NewNetwork(func(string, ...any) {})
	var first []*Backend
	var tiers [2][]string
	for i := range tiers {
		for host := range 2 {
			b := NewBackend(network, fmt.Sprintf("10.%d.0.%d:443", i+1, host+1), func(string) {})
			b.Up()
			defer b.Down()
			if tiers[i] = append(tiers[i], b.Address); i == 0 {
				first = append(first, b)
			}
		}
	}
	recorded := &changes{}
	cc := openTiers(t, network, query, tiers, given.Set("Logger", slog.New(recorded)))
	defer cc.Close()
	calls := func(d time.Duration) (first int) {
		for range d / (100 * time.Millisecond) {
			to, err := new(call).invoke(cc, time.Second, true)
			if err != nil {
				t.Errorf("a call failed: %v", err)
			}
			if strings.HasPrefix(to, "10.1.") {
				first++
			}
			sleep(100 * time.Millisecond)
		}
		return first
	}
	calls(5 * time.Second)
	if recorded.count() > 0 {
		t.Fatalf("%d changes before anything fails", recorded.count())
	}
	for range 7 {
		for _, b := range first {
			b.Down()
		}
		synctest.Wait() // a call on a lost connection may fail
		meanwhile += calls(2 * time.Second)
		for _, b := range first {
			b.Up()
		}
		meanwhile += calls(2 * time.Second)
	}
	stable := time.Now().Add(-2 * time.Second)
	for time.Since(stable) < 5*time.Minute && calls(time.Second) < 9 {
		continue
	}
	back = time.Since(stable)
	calls(5 * time.Minute)
	return recorded.count(), meanwhile * 100 / (7 * 40), back
}

// openTiers opens a channel with two priorities.
func openTiers(t *testing.T, network *Network, query string, tiers [2][]string, options ...given.Option) *grpc.ClientConn {
	t.Helper()
	var resolvers []resolver.Builder
	for i, addresses := range tiers {
		var state resolver.State
		for _, address := range addresses {
			state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
		}
		builder := manual.NewBuilderWithScheme(fmt.Sprint("tier", i+1))
		builder.InitialState(state)
		resolvers = append(resolvers, builder)
	}
	cc, err := grpc.NewClient("failover:///tier1:%2F%2F%2Fx,tier2:%2F%2F%2Fx"+query,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(network.Dial),
		given.Dial(append(options, given.Sources(failover.WithResolvers(resolvers...)))...))
	if err != nil {
		t.Fatal(err)
	}
	return cc
}
