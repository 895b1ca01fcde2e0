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

// tapName is the name of the tap policy. A tap records and forwards the updates and reports of the
// policy below it.
const tapName = "sim_tap"

func init() { balancer.Register(tapBuilder{}) }

var channels sync.Map

// tapJSON is the configuration of a tap. Child is the child of the priority policy that it
// observes, or "" if it observes the priority policy itself. Config is for the policy below the
// tap.
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

// Build returns a tap, which builds its child policy when it gets its first configuration.
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
		t.channel.beginUpdate()
		defer t.channel.endUpdate()
	}
	state.BalancerConfig = config.inner
	if t.child == "" {
		return t.inner.UpdateClientConnState(state)
	}
	yieldRandomly()
	defer yieldRandomly()
	return t.inner.UpdateClientConnState(state)
}

// yieldRandomly sometimes lets other goroutines run, so that more happens during the update of a
// child.
func yieldRandomly() {
	for range rand.IntN(4) / 3 * rand.IntN(200) { //nolint:gosec // the seed does not determine the interleaving
		runtime.Gosched()
	}
}

func (t *tap) ResolverError(err error) {
	if t.inner != nil {
		t.inner.ResolverError(err)
		return
	}
	t.cc.UpdateState(balancer.State{ConnectivityState: failing, Picker: errPicker{err}})
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
		t.channel.childClosed(t.child)
	}
}

type errPicker struct{ err error }

func (f errPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, f.err
}

type tapConn struct {
	balancer.ClientConn
	tap *tap
}

func (c *tapConn) UpdateState(state balancer.State) {
	if c.tap.child == "" {
		c.tap.channel.policyPublished(state)
		c.ClientConn.UpdateState(state)
		return
	}
	// The model and the policy must get the reports of different children in the same order.
	// UpdateState only queues them, so it's fine to hold a lock.
	c.tap.channel.reportMu.Lock()
	defer c.tap.channel.reportMu.Unlock()
	c.tap.channel.childReported(c.tap.child, state)
	c.ClientConn.UpdateState(state)
}

func (c *tapConn) ResolveNow(o resolver.ResolveNowOptions) { c.ClientConn.ResolveNow(o) }
