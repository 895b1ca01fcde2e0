package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// tapName is the name of a policy that observes its child policy and passes everything on.
const tapName = "sim_tap"

func init() { balancer.Register(tapBuilder{}) }

// channels has the channels by number. A tap finds its channel there.
var channels sync.Map

// tapJSON is the configuration of a tap. Child is the child of the priority policy, or "" for the
// priority policy itself. Config is the policy below the tap.
type tapJSON struct {
	Channel int             `json:"channel"`
	Child   string          `json:"child"`
	Config  json.RawMessage `json:"config"`
}

type tapConfig struct {
	serviceconfig.LoadBalancingConfig
	tapJSON
	builder balancer.Builder
	inner   serviceconfig.LoadBalancingConfig
}

type tapBuilder struct{}

func (tapBuilder) Name() string { return tapName }

func (tapBuilder) ParseConfig(text json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	c := &tapConfig{tapJSON: parse[tapJSON](text)}
	for name, inner := range parse[[]map[string]json.RawMessage](c.Config)[0] {
		c.builder = balancer.Get(name)
		var err error
		if c.inner, err = c.builder.(balancer.ConfigParser).ParseConfig(inner); err != nil {
			return nil, fmt.Errorf("below the tap: %w", err)
		}
	}
	return c, nil
}

// Build returns a tap. The tap builds its child policy when it gets its first configuration.
func (tapBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return &tap{cc: cc, opts: opts}
}

type tap struct {
	cc   balancer.ClientConn
	opts balancer.BuildOptions

	channel *channel
	child   string
	inner   balancer.Balancer
}

func (t *tap) UpdateClientConnState(state balancer.ClientConnState) error {
	config := state.BalancerConfig.(*tapConfig)
	if t.inner == nil {
		c, _ := channels.Load(config.Channel)
		t.channel, t.child = c.(*channel), config.Child
		t.inner = config.builder.Build(&tapConn{t.cc, t}, t.opts)
	}
	if t.child == "" {
		t.channel.updating()
		defer t.channel.updated()
	}
	state.BalancerConfig = config.inner
	if t.child == "" {
		return t.inner.UpdateClientConnState(state)
	}
	dawdle()
	defer dawdle()
	return t.inner.UpdateClientConnState(state)
}

// dawdle lets other goroutines run, so that more can happen during the update of a child.
func dawdle() {
	for range rand.IntN(4) / 3 * rand.IntN(200) { //nolint:gosec // the seed does not determine the interleaving
		runtime.Gosched()
	}
}

func (t *tap) ResolverError(err error) {
	if t.inner != nil {
		t.inner.ResolverError(err)
		return
	}
	t.cc.UpdateState(balancer.State{ConnectivityState: failing, Picker: failed{err}})
}

func (t *tap) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

func (t *tap) ExitIdle() {
	if t.inner != nil {
		t.inner.ExitIdle()
	}
}

func (t *tap) Close() {
	if t.inner != nil {
		t.inner.Close()
		t.channel.closed(t.child)
	}
}

type failed struct{ err error }

func (f failed) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, f.err
}

type tapConn struct {
	balancer.ClientConn
	t *tap
}

func (c *tapConn) UpdateState(state balancer.State) {
	if c.t.child == "" {
		c.t.channel.published(state)
		c.ClientConn.UpdateState(state)
		return
	}
	// The model must get the reports of two children in the same order as the policy, which only
	// queues them.
	c.t.channel.order.Lock()
	defer c.t.channel.order.Unlock()
	c.t.channel.reported(c.t.child, state)
	c.ClientConn.UpdateState(state)
}

func (c *tapConn) ResolveNow(o resolver.ResolveNowOptions) { c.ClientConn.ResolveNow(o) }
