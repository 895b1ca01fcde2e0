package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync/atomic"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
)

// resources holds what is served, as snapshots. Streams read them without locks, so that a client
// with a large request delays no other client.
type resources struct {
	policy  string
	current atomic.Pointer[snapshot]
}

// snapshot is what is served at one time. It does not change.
type snapshot struct {
	known    knowledge
	byType   map[string]map[string]resource // by type URL and name
	outdated chan struct{}                  // closed when there is a newer snapshot
}

type resource struct {
	content *anypb.Any
	version string // a hash of the content, which is the same in all replicas
}

// knowledge is how much of the content of the files and targets is known.
type knowledge int

const (
	nothingKnown knowledge = iota // nothing is known yet
	partlyKnown                   // everything is known except files and targets that were never valid
	allKnown
)

func newResources(policy string) *resources {
	r := &resources{policy: policy}
	r.current.Store(&snapshot{
		byType:   map[string]map[string]resource{clusterType: {}, endpointType: {}, listenerType: {}},
		outdated: make(chan struct{}),
	})
	return r
}

// set serves the clusters in updated, which are new or changed, and removes those in removed. It
// must not be called concurrently.
func (r *resources) set(updated []*clusterConfig, removed []string, known knowledge) error {
	before := r.current.Load()
	if len(updated)+len(removed) == 0 && known == before.known {
		return nil
	}
	next := &snapshot{known: known, byType: make(map[string]map[string]resource), outdated: make(chan struct{})}
	for typeURL, all := range before.byType {
		next.byType[typeURL] = maps.Clone(all)
		for _, name := range removed {
			delete(next.byType[typeURL], name)
		}
	}
	for _, g := range updated {
		if err := next.add(g, r.policy); err != nil {
			return err
		}
	}
	r.current.Store(next)
	close(before.outdated)
	return nil
}

func (n *snapshot) add(g *clusterConfig, policy string) error {
	name := g.name()
	cluster, err := clusterFor(g, policy)
	if err != nil {
		return err
	}
	listener, err := listenerFor(name)
	if err != nil {
		return err
	}
	messages := map[string]proto.Message{clusterType: cluster, listenerType: listener}
	if delete(n.byType[endpointType], name); g.endpoints != nil {
		messages[endpointType] = g.endpoints
	}
	for typeURL, message := range messages {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		n.byType[typeURL][name] = resource{&anypb.Any{TypeUrl: typeURL, Value: data}, hex.EncodeToString(sum[:12])}
	}
	return nil
}

// response returns the names of the resources to send for a topic, in order, and the versions that
// the client then has. ok is false if there is nothing to send yet.
func (n *snapshot) response(typeURL string, t *topic) (names []string, versions map[string]string, ok bool) {
	all, served := n.byType[typeURL]
	if !served {
		return nil, nil, t.nonce == "" && n.known == allKnown
	}
	// A client drops a listener or cluster that is missing from a response, but not endpoints.
	listsAll := typeURL != endpointType
	if !n.mayRespond(listsAll, t) {
		return nil, nil, false
	}
	versions = make(map[string]string)
	for name := range t.names {
		if r, exists := all[name]; exists {
			versions[name] = r.version
		}
	}
	if t.wildcard {
		for name, r := range all {
			versions[name] = r.version
		}
	}
	for name, version := range versions {
		if listsAll || t.sent[name] != version {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, versions, t.nonce == "" || !listsAll && len(names) > 0 || listsAll && !maps.Equal(versions, t.sent)
}

// mayRespond reports whether a response may be sent although some content may be unknown. Clients
// treat a resource that is missing from a response that lists all as removed. If a server that
// starts with an invalid file responded, they would drop endpoints that still work. A client that
// gets no response keeps its endpoints.
func (n *snapshot) mayRespond(listsAll bool, t *topic) bool {
	if n.known != partlyKnown || !listsAll {
		return n.known != nothingKnown
	}
	for name := range t.names {
		if _, served := n.byType[clusterType][name]; !served {
			return false
		}
	}
	return !t.wildcard || t.nonce != ""
}
