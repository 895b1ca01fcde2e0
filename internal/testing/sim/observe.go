package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/awaiting"
	"github.com/understudy-lb/understudy/internal/hierarchy"
	"github.com/understudy-lb/understudy/internal/stateattr"
)

// observingBuilder wraps a resolver builder and observes the updates of its resolvers.
type observingBuilder struct {
	resolver.Builder
	channel *channel
}

func (t *observingBuilder) OverrideAuthority(target resolver.Target) string {
	return t.Builder.(resolver.AuthorityOverrider).OverrideAuthority(target)
}

func (t *observingBuilder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	return t.Builder.Build(target, &observingConn{ClientConn: cc, channel: t.channel, trees: make(map[*serviceconfig.ParseResult]tree)}, opts)
}

// observingConn observes the updates of a channel. It inserts a tap above the priority policy, and
// one above each of its children.
type observingConn struct {
	resolver.ClientConn
	channel *channel

	mu    sync.Mutex
	trees map[*serviceconfig.ParseResult]tree
}

func (c *observingConn) ParseServiceConfig(text string) *serviceconfig.ParseResult {
	if strings.Contains(text, awaiting.Config) { // the config has no policy to observe
		return c.ClientConn.ParseServiceConfig(text)
	}
	t := c.channel.tap(text)
	result := c.ClientConn.ParseServiceConfig(t.text)
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.trees)
	c.trees[result] = t
	return result
}

func (c *observingConn) UpdateState(state resolver.State) error {
	if awaiting.Is(state) { // the update only makes calls wait; it has no endpoints
		return c.ClientConn.UpdateState(state)
	}
	c.mu.Lock()
	t := c.trees[state.ServiceConfig]
	c.mu.Unlock()
	size := 0
	for _, e := range state.Endpoints {
		if !stateattr.IsReserve(e) { // the endpoint occurs again elsewhere, and is counted there
			size++
		}
	}
	again := c.channel.w.received(c.channel, t, t.truth(state.Endpoints), size)
	err := c.ClientConn.UpdateState(state)
	if again && err == nil {
		c.channel.w.receivedAgain()
	}
	return err
}

// tree is the part of a generated configuration that the checks use.
type tree struct {
	text       string
	priorities []string
	of         []int // for each priority, its index in the source; nil if they are the same
	weights    map[string]map[string]uint32
	detections map[string]detection
}

func (t tree) numbers() []int {
	if t.of != nil {
		return t.of
	}
	numbers := make([]int, len(t.priorities))
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

type config map[string]json.RawMessage

func (c *channel) tap(text string) tree {
	t := tree{weights: make(map[string]map[string]uint32), detections: make(map[string]detection)}
	service := parse[config](json.RawMessage(text))
	policy := parse[[]map[string]config](service["loadBalancingConfig"])[0]
	priority := policy["understudy_priority"]
	t.priorities = parse[[]string](priority["priorities"])
	if of, split := priority["sourcePriorities"]; split {
		t.of = parse[[]int](of)
	}
	children := parse[map[string]config](priority["children"])
	for name, child := range children {
		t.weights[name] = weightsIn(child["config"])
		t.detections[name] = detectionIn(parse[[]map[string]json.RawMessage](child["config"])[0]["understudy_outlier_detection"])
		child["config"] = c.tapped(name, child["config"])
	}
	priority["children"] = marshal(children)
	service["loadBalancingConfig"] = c.tapped("", marshal([]map[string]config{policy}))
	t.text = string(marshal(service))
	return t
}

func weightsIn(policies json.RawMessage) map[string]uint32 {
	for name, policy := range parse[[]map[string]config](policies)[0] {
		if name != "understudy_weighted_target" {
			return weightsIn(policy["childPolicy"])
		}
		weights := make(map[string]uint32)
		for locality, target := range parse[map[string]config](policy["targets"]) {
			if weights[locality] = 1; policy["balance"] == nil {
				weights[locality] = parse[uint32](target["weight"])
			}
		}
		return weights
	}
	return nil
}

func (c *channel) tapped(child string, policies json.RawMessage) json.RawMessage {
	return marshal([]any{map[string]any{tapName: tapJSON{c.id, child, policies}}})
}

func parse[T any](text json.RawMessage) T {
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		panic(err)
	}
	return v
}

func marshal(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

func (t tree) truth(endpoints []resolver.Endpoint) Truth {
	truth := make(Truth, len(t.priorities))
	for _, e := range endpoints {
		path := hierarchy.Path(e)
		i := slices.Index(t.priorities, path[0])
		if i < 0 {
			continue
		}
		at := slices.IndexFunc(truth[i], func(l Locality) bool { return l.Zone == path[1] })
		if at < 0 {
			at = len(truth[i])
			truth[i] = append(truth[i], Locality{Zone: path[1], Weight: t.weights[path[0]][path[1]]})
		}
		l := &truth[i][at]
		w := max(weight.FromEndpoint(e).Weight, 1)
		l.Endpoints = append(l.Endpoints, Endpoint{Address: e.Addresses[0].Addr, Weight: w})
	}
	for i, name := range t.priorities { // localities without endpoints have a share of the weight, too
		for _, zone := range slices.Sorted(maps.Keys(t.weights[name])) {
			if !slices.ContainsFunc(truth[i], func(l Locality) bool { return l.Zone == zone }) {
				truth[i] = append(truth[i], Locality{Zone: zone, Weight: t.weights[name][zone]})
			}
		}
		truth[i].detecting(t.detections[name])
	}
	return truth
}
