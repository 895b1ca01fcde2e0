package explain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/topology"
)

// slow is a policy that publishes in an event of its serializer, which takes until
// release is closed.
type slow struct {
	balancer.Balancer // nil: what is not called
	cc                balancer.ClientConn
	events            serial.Serializer
	release           chan struct{}
}

func (*slow) Name() string { return "explain_test_slow" }

func (s *slow) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	s.cc = cc
	return s
}

func (s *slow) UpdateClientConnState(balancer.ClientConnState) error {
	s.events.Enqueue(func() {
		<-s.release
		s.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: base.NewErrPicker(nil)})
	})
	return nil
}

func (*slow) Close() {}

// However long a policy takes for an event, its conclusion is waited for.
func TestSettleWaitsForPolicies(t *testing.T) {
	policy := &slow{release: make(chan struct{})}
	balancer.Register(policy)
	s, err := start(plan{config: []byte(`[{"explain_test_slow": {}}]`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	settled := make(chan error, 1)
	go func() { settled <- s.bringUp(t.Context()) }()
	for range 10_000 {
		runtime.Gosched()
	}
	select {
	case err := <-settled:
		t.Fatalf("bringUp = %v while the policy was busy", err)
	default:
	}
	close(policy.release)
	if err := <-settled; err != nil || s.channel.published().Picker == nil {
		t.Errorf("bringUp = %v, published %+v", err, s.channel.published())
	}
}

func TestSettleEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := fmt.Errorf("enough")
	cancel(reason)
	if err := (&simulation{channel: &channel{}}).settle(ctx); err != reason {
		t.Errorf("settle = %v, want the cause", err)
	}
}

// With two priorities down, one without endpoints, and one of two addresses of each
// endpoint down, all has come up, every time, when settle returns.
func TestSettlesCompletely(t *testing.T) {
	var b strings.Builder
	b.WriteString("endpoints:\n")
	for priority := range 4 {
		fmt.Fprintf(&b, "- {priority: %d, lb_endpoints: [", priority)
		for i := range 10 {
			if priority != 1 {
				fmt.Fprintf(&b, "{endpoint: {address: %s, additional_addresses: [{address: %s}]}},", address(priority, i), address(priority+10, i))
			}
		}
		b.WriteString("]}\n")
	}
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := clusterfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	down := func(a partAddress) bool { return !strings.HasPrefix(a.dial, "10.0.13.") }
	for range 50 {
		answer, err := doc.Answer()
		if err != nil {
			t.Fatal(err)
		}
		tree, err := new(topology.Translator).Translate(&answer)
		if err != nil {
			t.Fatal(err)
		}
		s, err := start(plan{tree: tree, config: tree.Config()}, down)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.bringUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]int)
		for range 20 {
			result, err := s.channel.published().Picker.Pick(balancer.PickInfo{})
			if err != nil {
				t.Fatal(err)
			}
			seen[result.SubConn.(*subConn).address.dial]++
		}
		if len(seen) != 10 || seen["10.0.13.7:1"] != 2 {
			t.Fatalf("calls went to %v, want two to each of the ten endpoints of priority 3", seen)
		}
		s.root.Close()
	}
}

// weighted_round_robin makes the pickers of many endpoints one by one in its own time:
// the last of them is waited for.
func TestSettlesWithManyEndpoints(t *testing.T) {
	const n = 5_000
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	var b strings.Builder
	b.WriteString("endpoints: [{lb_endpoints: [\n")
	for i := range n {
		fmt.Fprintf(&b, "{endpoint: {address: %s}},\n", address(i/250, i%250))
	}
	b.WriteString("]}]\n")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Run(t.Context(), Options{File: path, JSON: true, Out: &out}); err != nil {
		t.Fatal(err)
	}
	if with := strings.Count(out.String(), "\"share\": 0.0002\n"); with != n {
		t.Errorf("%d endpoints of %d have their share, as in %.300s", with, n, out.String())
	}
}

func address(network, host int) string {
	return fmt.Sprintf("{socket_address: {address: 10.0.%d.%d, port_value: 1}}", network, host)
}
