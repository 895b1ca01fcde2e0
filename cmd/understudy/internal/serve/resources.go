package serve

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
)

type resources struct {
	policy                         string
	endpoints, clusters, listeners *cachev3.LinearCache
	gate                           *gate
}

// newResources returns empty caches whose versions begin with a new prefix. A version from an
// earlier process is therefore never current, so that reconnecting clients get all resources that
// they request.
func newResources(policy string) *resources {
	prefix := strconv.FormatInt(time.Now().UnixNano(), 36) + "-"
	newCache := func(typeURL string) *cachev3.LinearCache {
		return cachev3.NewLinearCache(typeURL, cachev3.WithVersionPrefix(prefix), cachev3.WithLogger(discardLogger{}))
	}
	r := &resources{policy: policy, endpoints: newCache(resourcev3.EndpointType), clusters: newCache(resourcev3.ClusterType), listeners: newCache(resourcev3.ListenerType)}
	r.gate = newGate(r.cache())
	return r
}

func (r *resources) cache() cachev3.Cache {
	return &cachev3.MuxCache{
		Caches: map[string]cachev3.Cache{
			resourcev3.EndpointType: r.endpoints,
			resourcev3.ClusterType:  r.clusters,
			resourcev3.ListenerType: r.listeners,
		},
		Classify:      func(r *cachev3.Request) string { return r.GetTypeUrl() },
		ClassifyDelta: func(r *cachev3.DeltaRequest) string { return r.GetTypeUrl() },
	}
}

// set serves the clusters in updated, which are new or changed, and removes those in removed. All
// changes of one type are published together. A resource is published after the resources that it
// refers to, and removed before them.
func (r *resources) set(updated []*clusterConfig, removed []string) error {
	if len(updated)+len(removed) == 0 {
		return nil
	}
	endpoints := make(map[string]types.Resource)
	clusters, listeners := make(map[string]types.Resource), make(map[string]types.Resource)
	known := r.clusters.GetResources()
	var withoutEndpoints []string // clusters whose endpoints come from another server
	for _, g := range updated {
		name := g.name()
		if g.endpoints != nil {
			endpoints[name] = g.endpoints
		} else {
			withoutEndpoints = append(withoutEndpoints, name)
		}
		cluster, err := clusterFor(g, r.policy)
		if err != nil {
			return err
		}
		if before := known[name]; before == nil || !proto.Equal(before.(proto.Message), cluster) {
			clusters[name] = cluster
		}
		if known[name] != nil {
			continue
		}
		if listeners[name], err = newListener(name); err != nil {
			return err
		}
	}
	return errors.Join(
		r.endpoints.UpdateResources(endpoints, nil),
		r.clusters.UpdateResources(clusters, nil),
		r.listeners.UpdateResources(listeners, removed),
		r.clusters.UpdateResources(nil, removed),
		r.endpoints.UpdateResources(nil, slices.Concat(removed, withoutEndpoints)),
	)
}

type discardLogger struct{}

func (discardLogger) Debugf(string, ...any) {}
func (discardLogger) Infof(string, ...any)  {}
func (discardLogger) Warnf(string, ...any)  {}
func (discardLogger) Errorf(string, ...any) {}
