package serve

import (
	"context"
	"errors"
	"strconv"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// resources is what is served: a cache for each type.
type resources struct {
	endpoints, clusters, listeners *cachev3.LinearCache
}

// newResources returns empty ones. Their versions differ from those of an earlier
// server on the same address, which its clients will name.
func newResources() *resources {
	prefix := strconv.FormatInt(time.Now().UnixNano(), 36) + "-"
	empty := func(typeURL string) *cachev3.LinearCache {
		return cachev3.NewLinearCache(typeURL, cachev3.WithVersionPrefix(prefix), cachev3.WithLogger(quiet{}))
	}
	return &resources{empty(resourcev3.EndpointType), empty(resourcev3.ClusterType), empty(resourcev3.ListenerType)}
}

// cache is what a server of all types needs.
func (r *resources) cache() cachev3.Cache {
	mux := &cachev3.MuxCache{Caches: map[string]cachev3.Cache{
		resourcev3.EndpointType: r.endpoints,
		resourcev3.ClusterType:  r.clusters,
		resourcev3.ListenerType: r.listeners,
		"":                      nothing{},
	}}
	classify := func(typeURL string) string {
		if _, ok := mux.Caches[typeURL]; ok {
			return typeURL
		}
		return ""
	}
	mux.Classify = func(r *cachev3.Request) string { return classify(r.GetTypeUrl()) }
	mux.ClassifyDelta = func(r *cachev3.DeltaRequest) string { return classify(r.GetTypeUrl()) }
	return mux
}

// add serves a cluster that was not served before. What a resource refers to comes
// first.
func (r *resources) add(cluster *endpointv3.ClusterLoadAssignment) error {
	name := cluster.GetClusterName()
	listener, err := newListener(name)
	if err != nil {
		return err
	}
	return errors.Join(
		r.endpoints.UpdateResource(name, cluster),
		r.clusters.UpdateResource(name, newCluster(name)),
		r.listeners.UpdateResource(name, listener),
	)
}

// update serves new endpoints of a cluster.
func (r *resources) update(cluster *endpointv3.ClusterLoadAssignment) error {
	return r.endpoints.UpdateResource(cluster.GetClusterName(), cluster)
}

// remove serves a cluster no longer.
func (r *resources) remove(name string) error {
	return errors.Join(r.listeners.DeleteResource(name), r.clusters.DeleteResource(name), r.endpoints.DeleteResource(name))
}

// nothing holds no resources of any type. A client that asks for a type that is not
// served here waits, and keeps its stream.
type nothing struct{}

func (nothing) CreateWatch(*cachev3.Request, cachev3.Subscription, chan cachev3.Response) (func(), error) {
	return nil, nil
}

func (nothing) CreateDeltaWatch(*cachev3.DeltaRequest, cachev3.Subscription, chan cachev3.DeltaResponse) (func(), error) {
	return nil, nil
}

func (nothing) Fetch(context.Context, *cachev3.Request) (cachev3.Response, error) {
	return nil, errors.New("only streams are served")
}

// quiet discards what go-control-plane logs for its own sake.
type quiet struct{}

func (quiet) Debugf(string, ...any) {}
func (quiet) Infof(string, ...any)  {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
