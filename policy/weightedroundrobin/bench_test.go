package weightedroundrobin

import (
	"fmt"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/weighted"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func manyEndpoints(n, shift int) balancer.ClientConnState {
	es := make([]resolver.Endpoint, n)
	for i := range es {
		address := fmt.Sprintf("10.%d.%d.%d:443", i>>16, i>>8&255, i&255)
		es[i] = resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}}
		es[i] = weight.Set(es[i], weight.EndpointInfo{Weight: uint32((i+shift)%100 + 1)})
	}
	return balancer.ClientConnState{ResolverState: resolver.State{Endpoints: es}}
}

type channel struct {
	lbtest.ClientConn
	published chan balancer.State
	complete  chan int
	done      chan struct{}
}

func newChannel() *channel {
	c := &channel{
		published: make(chan balancer.State, 64),
		complete:  make(chan int, 1),
		done:      make(chan struct{}),
	}
	c.OnUpdate(func(state balancer.State) { c.published <- state })
	go c.pick()
	return c
}

func (c *channel) pick() {
	defer close(c.done)
	for state := range c.published {
		state.Picker.Pick(balancer.PickInfo{})
		if w, ok := state.Picker.(*weighted.Picker); ok {
			select {
			case <-c.complete:
			default:
			}
			c.complete <- w.Len()
		}
	}
}

func (c *channel) close() {
	close(c.published)
	<-c.done
}

func bringUp(c *channel, b balancer.Balancer, ccs balancer.ClientConnState) time.Duration {
	start := time.Now()
	if err := b.UpdateClientConnState(ccs); err != nil {
		panic(err)
	}
	for _, sc := range c.SubConns() {
		sc.Report(connectivity.Connecting, nil)
		sc.Report(connectivity.Ready, nil)
		sc.ReportHealth(connectivity.Ready, nil)
	}
	if shell.PolicyOf(b) != nil {
		for <-c.complete < len(ccs.ResolverState.Endpoints) {
		}
	}
	return time.Since(start)
}

func bringUpOnce(builder balancer.Builder, n int) time.Duration {
	c := newChannel()
	policy := builder.Build(c, balancer.BuildOptions{})
	elapsed := bringUp(c, policy, manyEndpoints(n, 0))
	policy.Close()
	c.close()
	return elapsed
}

// BenchmarkBringUp makes endpoints READY one by one while another goroutine picks. It reports the
// time as a multiple of the time of round_robin, which takes about 20 s for 10,000 endpoints, and
// the exponent with which the time grows from 1,000 to 10,000 endpoints.
func BenchmarkBringUp(b *testing.B) {
	ours, grpcGo := newBuilder(Name), balancer.Get(roundrobin.Name)
	fastest := map[int]time.Duration{}
	for _, n := range []int{1000, 2000, 5000, 10_000} {
		b.Run(fmt.Sprintf("endpoints=%d", n), func(b *testing.B) {
			var total time.Duration
			minimum := time.Duration(math.MaxInt64)
			for b.Loop() {
				elapsed := bringUpOnce(ours, n)
				total += elapsed
				minimum = min(minimum, elapsed)
			}
			fastest[n] = minimum
			mean := total / time.Duration(b.N)
			b.ReportMetric(float64(mean.Microseconds())/1000, "ms")
			if n <= 2000 || b.N == 1 {
				b.ReportMetric(float64(bringUpOnce(grpcGo, n))/float64(mean), "round_robin/ours")
			}
			if n == 10_000 && fastest[1000] > 0 {
				b.ReportMetric(math.Log10(float64(fastest[n])/float64(fastest[1000])), "exponent")
			}
		})
	}
}

func BenchmarkUpdate(b *testing.B) {
	for name, shift := range map[string]int{"identical": 0, "weights": 1} {
		for _, n := range []int{1000, 10_000} {
			b.Run(fmt.Sprintf("%s/endpoints=%d", name, n), func(b *testing.B) {
				c := newChannel()
				policy := newBuilder(Name).Build(c, balancer.BuildOptions{})
				updates := []balancer.ClientConnState{manyEndpoints(n, 0), manyEndpoints(n, shift)}
				bringUp(c, policy, updates[0])
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := policy.UpdateClientConnState(updates[(i+1)%2]); err != nil {
						b.Fatal(err)
					}
				}
				policy.Close()
				c.close()
			})
		}
	}
}
