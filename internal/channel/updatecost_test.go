package channel_test

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// answerTest applies the answers of a source to policies with fake subchannels.
type answerTest struct {
	resolver.ClientConn // supplies methods that are not called
	discovery.Started

	receiver *discovery.Receiver
	join     *join.Resolver
	conn     lbtest.ClientConn
	policy   balancer.Balancer
	updates  int
}

func (*answerTest) Check(bool) error { return nil }

func (u *answerTest) Start(r *discovery.Receiver) (discovery.Started, error) {
	u.receiver = r
	return discovery.Started{}, nil
}

func (*answerTest) ReportError(error) {}

func (*answerTest) ParseServiceConfig(text string) *serviceconfig.ParseResult {
	var config parsedConfig
	err := json.Unmarshal([]byte(text), &config)
	return &serviceconfig.ParseResult{Config: config, Err: err}
}

type parsedConfig struct {
	serviceconfig.Config `json:"-"`
	LoadBalancingConfig  lbconfig.Policy
}

func (u *answerTest) UpdateState(state resolver.State) error {
	u.updates++
	config := state.ServiceConfig.Config.(parsedConfig).LoadBalancingConfig.Config
	return u.policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: config})
}

func (u *answerTest) answer(tb testing.TB, a *discovery.Answer) {
	if err := u.receiver.Update(*a); err != nil {
		tb.Fatal(err)
	}
	for serial.Background() > 0 {
		runtime.Gosched()
	}
}

func newAnswerTest(tb testing.TB, settings topology.Settings, a *discovery.Answer) *answerTest {
	u := &answerTest{}
	u.policy = balancer.Get("understudy_priority").Build(&u.conn, balancer.BuildOptions{})
	e := join.Entry{Mechanism: discovery.Mechanism{Source: u}}
	var err error
	u.join, err = join.Start(u, &join.Config{
		Scheme: "x", Target: "x:///y", Entries: []join.Entry{e},
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

func (u *answerTest) connect(tb testing.TB) {
	for _, sc := range u.conn.LiveSubConns() {
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

// Processing an answer takes few allocations, even if the weights of all endpoints change. If the
// content is unchanged, the channel gets no update.
func TestAllocationsPerAnswer(t *testing.T) {
	const n = 10_000
	a, same, weights := manyEndpoints(n, 0, "a"), manyEndpoints(n, 0, "b"), manyEndpoints(n, 1, "c")
	one := manyEndpoints(n, 0, "d")
	one.Priorities[0].Localities[0].Endpoints[n/2].Weight = 1000
	for name, settings := range answerSettings {
		u := newAnswerTest(t, settings, a)
		for _, test := range []struct {
			name   string
			answer *discovery.Answer
			limit  float64
			sent   bool
		}{
			{"the same content under another identity", same, 100, false},
			{"one weight", one, 300, true},
			{"all weights", weights, 600, true},
		} {
			i, before := 0, u.updates
			got := testing.AllocsPerRun(10, func() {
				u.answer(t, []*discovery.Answer{test.answer, a}[i%2])
				i++
			})
			u.answer(t, a)
			if got > test.limit {
				t.Errorf("%s, %s: %v allocations for an answer, want at most %v", name, test.name, got, test.limit)
			}
			if sent := u.updates > before; sent != test.sent {
				t.Errorf("%s, %s: an update was sent: %v, want %v", name, test.name, sent, test.sent)
			}
		}
	}
}

var answerSettings = map[string]topology.Settings{"plain": {}, "outlier": {OutlierDetection: options.On, Overflow: true}}

// With -cpu 1, the best time is the CPU time of an answer without the garbage collector, even on a
// busy machine.
func BenchmarkAnswer(b *testing.B) {
	const n = 10_000
	a, same, weights := manyEndpoints(n, 0, "a"), manyEndpoints(n, 0, "b"), manyEndpoints(n, 1, "c")
	weight, address := manyEndpoints(n, 0, "d"), manyEndpoints(n, 0, "e")
	weight.Priorities[0].Localities[0].Endpoints[n/2].Weight = 1000
	address.Priorities[0].Localities[0].Endpoints[n/2].Addresses = []string{"10.200.0.1:80"}
	for name, settings := range answerSettings {
		for _, test := range []struct {
			changed string
			*discovery.Answer
		}{{"identity", same}, {"weight", weight}, {"address", address}, {"weights", weights}} {
			b.Run(name+"/"+test.changed, func(b *testing.B) {
				u := newAnswerTest(b, settings, a)
				u.answer(b, test.Answer)
				u.connect(b)
				b.ReportAllocs()
				best := time.Duration(math.MaxInt64)
				for i := 1; b.Loop(); i++ {
					begin := time.Now()
					u.answer(b, []*discovery.Answer{test.Answer, a}[i%2])
					best = min(best, time.Since(begin))
					u.conn.Forget() // a channel keeps no earlier picker
				}
				b.ReportMetric(float64(best.Microseconds()), "best-µs/op")
			})
		}
	}
}

// BenchmarkAnswerOfManyLocalities changes the weight of one locality of many.
func BenchmarkAnswerOfManyLocalities(b *testing.B) {
	answers := make([]*discovery.Answer, 2)
	for i := range answers {
		answers[i] = &discovery.Answer{Service: "bench"}
		for p := range 10 {
			var priority discovery.Priority
			for l := range 100 {
				priority.Localities = append(priority.Localities, discovery.Locality{
					Region: fmt.Sprint("r", l), Weight: 1, Endpoints: []discovery.Endpoint{{Addresses: []string{fmt.Sprintf("10.0.%d.%d:443", p, l)}}},
				})
			}
			answers[i].Priorities = append(answers[i].Priorities, priority)
		}
		answers[i].Priorities[0].Localities[0].Weight = uint32(1 + i)
	}
	u := newAnswerTest(b, topology.Settings{}, answers[0])
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		u.answer(b, answers[i%2])
	}
}

// The memory of a policy tree for each endpoint is bounded. It includes neither the subchannels,
// which are fakes, nor the source's answer.
func TestMemoryPerEndpoint(t *testing.T) {
	for name, limit := range map[string]int64{"plain": 1250, "outlier": 1500} {
		got := int64(math.MaxInt64)
		for range 3 { // the runtime may keep more for goroutines than before
			got = min(got, bytesPerEndpoint(t, answerSettings[name]))
		}
		t.Logf("%s: %d bytes for an endpoint", name, got)
		if got > limit {
			t.Errorf("%s: %d bytes for an endpoint, want at most %d", name, got, limit)
		}
	}
}

func bytesPerEndpoint(t *testing.T, settings topology.Settings) (bytes int64) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		a, before := manyEndpoints(n, 0, "a"), heap()
		fakes := newFakes(n)
		each := heap() - before
		runtime.KeepAlive(fakes)
		fakes, before = nil, heap()
		u := newAnswerTest(t, settings, a)
		time.Sleep(time.Second) // for the last picker, which is delayed
		u.conn.Forget()
		bytes = (heap() - before - each) / n
		runtime.KeepAlive(fakes)
		runtime.KeepAlive(a)
		runtime.KeepAlive(u)
	})
	return bytes
}

func newFakes(n int) *lbtest.ClientConn {
	conn := new(lbtest.ClientConn)
	addresses := make([]resolver.Address, 1)
	for range n {
		_, _ = conn.NewSubConn(addresses, balancer.NewSubConnOptions{})
	}
	return conn
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // empties sync.Pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
