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

// tapName is the policy that overhears what another says, and does nothing else.
const tapName = "sim_tap"

func init() { balancer.Register(tapBuilder{}) }

// channels are those of the worlds that live, for the taps to find.
var channels sync.Map // int to *channel

// tapJSON is a tap's configuration: of which channel, and of which child of priority,
// "" for priority itself, and what it stands above.
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

// ParseConfig parses the configuration of what the tap stands above, too.
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

// Build waits for the configuration.
func (tapBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return &tap{cc: cc, opts: opts}
}

// tap stands above one policy.
type tap struct {
	cc   balancer.ClientConn
	opts balancer.BuildOptions

	channel *channel // nil before the first configuration
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

// dawdle lets others go first: what comes at the same moment may come in the middle of a
// child's update.
func dawdle() {
	for range rand.IntN(4) / 3 * rand.IntN(200) { //nolint:gosec // interleavings have no seed
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

func (t *tap) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {} // gRPC calls listeners

func (t *tap) ExitIdle() {
	if t.inner != nil {
		t.inner.ExitIdle()
	}
}

func (t *tap) Close() {
	if t.inner != nil {
		t.inner.Close()
	}
}

// failed is the picker of a channel that never had a configuration.
type failed struct{ err error }

func (f failed) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, f.err
}

// tapConn is what the policy below takes for its channel.
type tapConn struct {
	balancer.ClientConn
	t *tap
}

// UpdateState overhears a report.
func (c *tapConn) UpdateState(state balancer.State) {
	if c.t.child == "" {
		c.t.channel.published(state)
		c.ClientConn.UpdateState(state)
		return
	}
	// The model hears of two children in the order in which the policy does, which only
	// queues what it is told.
	c.t.channel.order.Lock()
	defer c.t.channel.order.Unlock()
	c.t.channel.reported(c.t.child, state)
	c.ClientConn.UpdateState(state)
}

// ResolveNow passes a request on.
func (c *tapConn) ResolveNow(o resolver.ResolveNowOptions) { c.ClientConn.ResolveNow(o) }
