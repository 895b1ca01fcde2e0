package understudy_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/join"
	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	"github.com/understudy-lb/understudy/internal/topology"
)

// updated applies a source's answers to policies with fake subchannels.
type updated struct {
	resolver.ClientConn // supplies methods that are not called
	discovery.Started

	receiver *discovery.Receiver
	join     *join.Channel
	conn     lbtest.ClientConn
	policy   balancer.Balancer
	updates  int
}

func (*updated) Check(bool) error { return nil }

func (u *updated) Start(r *discovery.Receiver) (discovery.Started, error) {
	u.receiver = r
	return discovery.Started{}, nil
}

func (*updated) ReportError(error) {}

func (*updated) ParseServiceConfig(text string) *serviceconfig.ParseResult {
	var config parsedConfig
	err := json.Unmarshal([]byte(text), &config)
	return &serviceconfig.ParseResult{Config: config, Err: err}
}

type parsedConfig struct {
	serviceconfig.Config `json:"-"`
	LoadBalancingConfig  lbconfig.Policy
}

func (u *updated) UpdateState(state resolver.State) error {
	u.updates++
	config := state.ServiceConfig.Config.(parsedConfig).LoadBalancingConfig.Config
	return u.policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: config})
}

func (u *updated) answer(tb testing.TB, a *discovery.Answer) {
	if err := u.receiver.Update(*a); err != nil {
		tb.Fatal(err)
	}
	for serial.Background() > 0 {
		runtime.Gosched()
	}
}

func newUpdated(tb testing.TB, settings topology.Settings, a *discovery.Answer) *updated {
	u := &updated{}
	u.policy = balancer.Get("understudy_priority").Build(&u.conn, balancer.BuildOptions{})
	m := join.Mechanism{Mechanism: discovery.Mechanism{Source: u}}
	var err error
	u.join, err = join.Start(u, &join.ChannelConfig{
		Config:   join.Config{Scheme: "x", Target: "x:///y", Mechanisms: []join.Mechanism{m}},
		Settings: settings,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		u.join.Close()
		u.policy.Close()
	})
	u.answer(tb, a)
	u.connect(tb)
	return u
}

func (u *updated) connect(tb testing.TB) {
	for _, sc := range u.conn.Live() {
		sc.Report(connectivity.Connecting, nil)
		sc.Report(connectivity.Ready, nil)
		sc.ReportHealth(connectivity.Ready, nil)
	}
	for u.conn.State().ConnectivityState != connectivity.Ready || serial.Background() > 0 {
		runtime.Gosched()
	}
}

func manyEndpoints(n, turn int, identity string) *discovery.Answer {
	l := discovery.Locality{Region: "us-east", Zone: "a", Weight: 1}
	for i := range n {
		l.Endpoints = append(l.Endpoints, discovery.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d:443", i>>16, i>>8&255, i&255)},
			Weight:    uint32(1 + (i+turn)%100),
		})
	}
	return &discovery.Answer{Service: "bench", Identity: identity, Priorities: []discovery.Priority{{Localities: []discovery.Locality{l}}}}
}

// An unchanged answer allocates nothing per endpoint. A changed one allocates only for what has
// changed.
func TestAllocationsOfAnAnswer(t *testing.T) {
	const n = 10_000
	a, same, weights := manyEndpoints(n, 0, "a"), manyEndpoints(n, 0, "b"), manyEndpoints(n, 1, "c")
	one := manyEndpoints(n, 0, "d")
	one.Priorities[0].Localities[0].Endpoints[n/2].Weight = 1000
	for name, settings := range answerSettings {
		u := newUpdated(t, settings, a)
		for _, test := range []struct {
			name   string
			answer *discovery.Answer
			most   float64
			sent   bool
		}{
			{"the same content under another identity", same, 100, false},
			{"one weight", one, 1000, true},
			{"all weights", weights, 1000, true},
		} {
			i, before := 0, u.updates
			got := testing.AllocsPerRun(10, func() {
				u.answer(t, []*discovery.Answer{test.answer, a}[i%2])
				i++
			})
			u.answer(t, a)
			if got > test.most {
				t.Errorf("%s, %s: %v allocations for an answer, want at most %v", name, test.name, got, test.most)
			}
			if sent := u.updates > before; sent != test.sent {
				t.Errorf("%s, %s: an update was sent: %v, want %v", name, test.name, sent, test.sent)
			}
		}
	}
}

var answerSettings = map[string]topology.Settings{"plain": {}, "outlier": {OutlierDetection: true, FastFailover: true}}

func BenchmarkAnswer(b *testing.B) {
	const n = 10_000
	a, same, weights := manyEndpoints(n, 0, "a"), manyEndpoints(n, 0, "b"), manyEndpoints(n, 1, "c")
	weight, address := manyEndpoints(n, 0, "d"), manyEndpoints(n, 0, "e")
	weight.Priorities[0].Localities[0].Endpoints[n/2].Weight = 1000
	address.Priorities[0].Localities[0].Endpoints[n/2].Addresses = []string{"10.200.0.1:80"}
	for name, settings := range answerSettings {
		for _, to := range []struct {
			changed string
			*discovery.Answer
		}{{"identity", same}, {"weight", weight}, {"address", address}, {"weights", weights}} {
			b.Run(name+"/"+to.changed, func(b *testing.B) {
				u := newUpdated(b, settings, a)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					u.answer(b, []*discovery.Answer{to.Answer, a}[i%2])
					if i == 0 && to.changed == "address" {
						b.StopTimer()
						u.connect(b)
						b.StartTimer()
					}
				}
			})
		}
	}
}
