package explain

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// For random files, explain computes the shares that the real policies have after a minute, on a
// channel without a network.
func TestSimulationMatchesPolicies(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 28))
		var settings options.Settings
		settings.Overflow = random.IntN(2) == 0
		most := 1
		if random.IntN(4) == 0 {
			settings.EndpointPolicy = "pick_first"
			most = 0 // it tries the families in turn
		}
		file := randomFile(random, most)
		settings.WarmStandby = random.IntN(2)
		settings.OutlierDetection = options.OutlierDetection(random.IntN(2))
		result := newTestResult(t, file, settings)
		for i := range result.Endpoints {
			if random.IntN(3) == 0 {
				result.takeDown(result.Endpoints[i].Address)
			}
		}
		result.play(settings)
		synctest.Test(t, func(t *testing.T) {
			want := measureShares(t, result)
			differs := (result.Priority != nil) != (len(want) > 0)
			for _, e := range result.Endpoints {
				differs = differs || math.Abs(e.Share-want[e.Address]) > 0.01
			}
			if differs {
				got := make(map[string]float64)
				for _, e := range result.Endpoints {
					got[e.Address] = e.Share
				}
				t.Errorf("seed %d: %s\nsettings %+v\nplayed:   %v\npolicies: %v", seed, file, settings, got, want)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// randomFile returns an endpoints file with up to three priorities, three localities per priority
// and four endpoints per locality, each with an additional address at most.
func randomFile(random *rand.Rand, additionalAddresses int) string {
	var b strings.Builder
	b.WriteString("endpoints:\n")
	for priority := range 1 + random.IntN(3) {
		for locality := range 1 + random.IntN(3) {
			fmt.Fprintf(&b, "- {priority: %d, locality: {zone: z%d}, load_balancing_weight: %d, lb_endpoints: [", priority, locality, 1+random.IntN(3))
			count := random.IntN(5)
			if priority+locality == 0 {
				count = max(count, 1) // a file lists at least one endpoint
			}
			for i := range count {
				health := ""
				if random.IntN(6) == 0 {
					health = ", health_status: DRAINING"
				}
				additional := ""
				if additionalAddresses > 0 && random.IntN(3) == 0 {
					additional = fmt.Sprintf(", additional_addresses: [{address: {socket_address: {address: '2001:db8::%d%d%d', port_value: 1}}}]", priority, locality, i)
				}
				fmt.Fprintf(&b, "{load_balancing_weight: %d, endpoint: {address: {socket_address: {address: 10.%d.%d.%d, port_value: 1}}%s}%s},", 1+random.IntN(3), priority, locality, i, additional, health)
			}
			b.WriteString("]}\n")
		}
	}
	return b.String()
}

func newTestResult(t *testing.T, file string, settings options.Settings) *Result {
	t.Helper()
	doc, err := clusterfile.LoadFrom(strings.NewReader(file), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var s subject
	g := doc.Resolve(doc.Names()[0])
	if err := s.addCluster(g.List[0]); err != nil {
		t.Fatal(err)
	}
	r, err := newResult(s, settings)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// measureShares runs the policies of a result for a minute, and returns each endpoint's share of 2,000
// calls. It returns nil if calls fail.
func measureShares(t *testing.T, r *Result) map[string]float64 {
	t.Helper()
	cc, endpoints := &lbtest.ClientConn{}, make(map[string]*Endpoint)
	for i := range r.Endpoints {
		for _, address := range r.Endpoints[i].addresses() {
			endpoints[address] = &r.Endpoints[i]
		}
	}
	root := balancer.Get("understudy_priority").Build(cc, balancer.BuildOptions{})
	defer root.Close()
	state := stateattr.SetChannel(resolver.State{Endpoints: r.Tree.Endpoints}, &stateattr.Channel{})
	if err := root.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: r.Tree.Config()}); err != nil && !errors.Is(err, balancer.ErrBadResolverState) {
		t.Fatal(err)
	}
	for range 60 {
		cc.CompleteConnects(func(address resolver.Address) error {
			if slices.Contains(endpoints[address.Addr].DownAddresses, address.Addr) {
				return status.Error(codes.Unavailable, "down")
			}
			return nil
		})
		time.Sleep(time.Second)
	}
	const calls = 2000
	shares := make(map[string]float64)
	for range calls {
		result, err := cc.State().Picker.Pick(balancer.PickInfo{Ctx: t.Context()})
		if err != nil {
			return nil
		}
		if result.Done != nil {
			result.Done(balancer.DoneInfo{})
		}
		shares[endpoints[result.SubConn.(*lbtest.SubConn).Addresses[0].Addr].Address] += 1. / calls
	}
	return shares
}

func TestRunIsDeterministic(t *testing.T) {
	path := largeFile(t, 100)
	var first bytes.Buffer
	for i := range 10 {
		var out bytes.Buffer
		opts := Options{File: path, Down: []string{"r0/z0"}, Options: []string{"overflow=true", "outlierDetection=true"}, JSON: true, Out: &out}
		if err := Run(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = out
		} else if !bytes.Equal(out.Bytes(), first.Bytes()) {
			t.Fatalf("run %d differs from the first:\n%s\n%s", i, &out, &first)
		}
	}
}

func largeFile(t *testing.T, endpoints int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("endpoints:\n")
	for l := range 4 {
		fmt.Fprintf(&b, "- locality: {region: r%d, zone: z%d}\n  priority: %d\n  load_balancing_weight: %d\n  lb_endpoints:\n", l%2, l, l/2, l+1)
		for i := range endpoints / 4 {
			fmt.Fprintf(&b, "  - {endpoint: {address: {socket_address: {address: 10.%d.%d.%d, port_value: 1}}}, load_balancing_weight: %d}\n", l, i/250, i%250, 1+i%7)
		}
	}
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
