package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// observingBuilder wraps a resolver builder so that its resolvers record their updates in channel.
type observingBuilder struct {
	resolver.Builder
	channel *channel
}

func (t *observingBuilder) OverrideAuthority(target resolver.Target) string {
	return t.Builder.(resolver.AuthorityOverrider).OverrideAuthority(target)
}

func (t *observingBuilder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	return t.Builder.Build(target, &observingConn{ClientConn: cc, channel: t.channel}, opts)
}

// observingConn records the updates of a channel. It also inserts a tap policy above the priority
// policy, and one above each of its children.
type observingConn struct {
	resolver.ClientConn
	channel *channel
}

func (c *observingConn) ParseServiceConfig(text string) *serviceconfig.ParseResult {
	const policies = `[{"understudy_priority":{}}]`
	if !strings.Contains(text, policies) && !strings.Contains(text, join.AwaitingConfig) {
		panic("no policies in " + text)
	}
	tapped := marshal([]any{map[string]any{tapName: tapJSON{c.channel.id, "", json.RawMessage(policies)}}})
	return c.ClientConn.ParseServiceConfig(strings.Replace(text, policies, string(tapped), 1))
}

func (c *observingConn) UpdateState(state resolver.State) error {
	if join.IsAwaiting(state) { // there are no endpoints, it just makes calls wait
		return c.ClientConn.UpdateState(state)
	}
	given, _ := stateattr.TakeConfig(state)
	t := treeOf(given.(*lbconfig.Priority))
	identical := c.channel.w.received(c.channel, t, t.truth(state.Endpoints), len(state.Endpoints))
	err := c.ClientConn.UpdateState(stateattr.SetConfig(state, c.channel.insertTaps(*given.(*lbconfig.Priority))))
	if identical && err == nil {
		c.channel.w.receivedIdentical()
	}
	return err
}

type tree struct {
	priorities []string
	weights    map[string]map[string]uint32
}

type config map[string]json.RawMessage

func treeOf(given *lbconfig.Priority) tree {
	t := tree{weights: make(map[string]map[string]uint32)}
	priority := parse[config](marshal(given))
	t.priorities = parse[[]string](priority["priorities"])
	for name, child := range parse[map[string]config](priority["children"]) {
		t.weights[name] = weightsIn(child["config"])
	}
	return t
}

func (c *channel) insertTaps(given lbconfig.Priority) *lbconfig.Priority {
	given.Children = maps.Clone(given.Children)
	for name, child := range given.Children {
		tap := &tapConfig{tapJSON: tapJSON{Channel: c.id, Child: name}, builder: child.Config.Builder, inner: child.Config.Config}
		child.Config = lbconfig.Named(tapName, tap)
		given.Children[name] = child
	}
	return &given
}

func weightsIn(policies json.RawMessage) map[string]uint32 {
	for name, policy := range parse[[]map[string]config](policies)[0] {
		if name != "understudy_weighted_target" {
			return weightsIn(policy["childPolicy"])
		}
		weights := make(map[string]uint32)
		for locality, target := range parse[map[string]config](policy["targets"]) {
			weights[locality] = parse[uint32](target["weight"])
		}
		return weights
	}
	return nil
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

func (t tree) truth(endpoints []resolver.Endpoint) EndpointSet {
	truth := make(EndpointSet, len(t.priorities))
	for _, e := range endpoints {
		path := hierarchy.Path(e)
		i := slices.Index(t.priorities, path[0])
		if i < 0 {
			continue
		}
		j := slices.IndexFunc(truth[i], func(l Locality) bool { return l.Zone == path[1] })
		if j < 0 {
			j = len(truth[i])
			truth[i] = append(truth[i], Locality{Zone: path[1], Weight: t.weights[path[0]][path[1]]})
		}
		l := &truth[i][j]
		w := max(weight.FromEndpoint(e).Weight, 1)
		l.Endpoints = append(l.Endpoints, Endpoint{Address: e.Addresses[0].Addr, Weight: w})
	}
	for i, name := range t.priorities { // localities without endpoints have a share of the weight, so add those too
		for _, zone := range slices.Sorted(maps.Keys(t.weights[name])) {
			if !slices.ContainsFunc(truth[i], func(l Locality) bool { return l.Zone == zone }) {
				truth[i] = append(truth[i], Locality{Zone: zone, Weight: t.weights[name][zone]})
			}
		}
	}
	return truth
}
