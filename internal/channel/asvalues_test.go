package channel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/live"
)

// countedBuilder counts how often a tree with its policy is parsed, marshaled and applied.
type countedBuilder struct {
	balancer.Builder
	parsed, marshaled, applied atomic.Int32
	last                       atomic.Pointer[countedConfig]
}

type countedConfig struct {
	serviceconfig.LoadBalancingConfig
	builder *countedBuilder
}

func (c *countedConfig) MarshalJSON() ([]byte, error) {
	c.builder.marshaled.Add(1)
	return []byte("{}"), nil
}

func (*countedBuilder) Name() string { return "counted_round_robin" }

func (b *countedBuilder) ParseConfig(json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	b.parsed.Add(1)
	return &countedConfig{builder: b}, nil
}

func (b *countedBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return &countedBalancer{b.Builder.Build(cc, opts), b}
}

type countedBalancer struct {
	balancer.Balancer
	builder *countedBuilder
}

func (b *countedBalancer) UpdateClientConnState(s balancer.ClientConnState) error {
	b.builder.applied.Add(1)
	b.builder.last.Store(s.BalancerConfig.(*countedConfig))
	s.BalancerConfig = nil
	return b.Balancer.UpdateClientConnState(s)
}

// manualSource is a source whose answers a test sends.
type manualSource struct{ receiver *discovery.Receiver }

func (*manualSource) Check(bool) error { return nil }

func (s *manualSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	s.receiver = r
	return discovery.Started{}, nil
}

// The tree of an answer reaches the policies as a value. The policy of the user's choice is therefore
// parsed before the first answer, and never with one; nothing is marshaled at all.
func TestAnswersReachPoliciesAsValues(t *testing.T) {
	live.Enable()
	defer live.Disable()
	builder := &countedBuilder{Builder: balancer.Get(roundrobin.Name)}
	balancer.Register(builder)
	source := &manualSource{}
	discovery.Register("manual", func(*discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: source}}, nil
	})
	synctest.Test(t, func(t *testing.T) {
		cc, err := understudy.NewClient("manual:///x", understudy.Options{EndpointPolicy: `counted_round_robin{"a": 1}`},
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("down") }))
		if err != nil {
			t.Fatal(err)
		}
		defer cc.Close()
		cc.Connect()
		synctest.Wait()
		before := builder.parsed.Load()
		var config *countedConfig
		for i := range 10 {
			applied := builder.applied.Load()
			answer := discovery.Answer{Drops: []discovery.Drop{{Category: "lb", PerMillion: uint32(i)}}}
			for n := range 1 + i%3 {
				answer.Priorities = append(answer.Priorities, discovery.Priority{Localities: []discovery.Locality{{
					Region: fmt.Sprint("r", i%2), Weight: uint32(1 + i), Endpoints: []discovery.Endpoint{{Addresses: []string{fmt.Sprintf("10.0.%d.%d:1", n, i)}}},
				}}})
			}
			if err := source.receiver.Update(answer); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if builder.applied.Load() == applied {
				t.Fatalf("update %d did not reach the policy", i)
			}
			if last := builder.last.Load(); config != nil && last != config {
				t.Errorf("update %d has another value for the policy", i)
			} else {
				config = last
			}
		}
		if parsed, marshaled := builder.parsed.Load()-before, builder.marshaled.Load(); parsed != 0 || marshaled != 0 || before == 0 {
			t.Errorf("the policy was parsed %d times before the answers and %d times with them, and marshaled %d times; want it parsed before them only", before, parsed, marshaled)
		}
	})
}
