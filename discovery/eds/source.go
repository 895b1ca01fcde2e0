package eds

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/experimental/stats"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/authority"
	"github.com/understudy-lb/understudy/topology"
)

// parts reads a target.
func parts(t *discovery.Target) ([]discovery.Part, error) {
	hosts, cluster, err := parseTarget(t.Target)
	if err != nil {
		return nil, err
	}
	s := source{
		hosts:    hosts,
		cluster:  cluster,
		options:  discovery.OwnOptions(t, options{maxResponse: defaultMaxResponse}),
		network:  discovery.OwnOptions(t, adsclient.Options{}).Network,
		recorder: t.BuildOptions.MetricsRecorder,
	}
	if v := t.Parameter(reachabilityParameter); v != "" {
		if s.options.reachabilityOnly, err = strconv.ParseBool(v); err != nil {
			return nil, fmt.Errorf("%s: %q given, want true or false", reachabilityParameter, v)
		}
	}
	return []discovery.Part{{Source: s, Authority: authority.Encode(cluster)}}, nil
}

// source finds the endpoints of a cluster.
type source struct {
	hosts    []string // none: those of the bootstrap
	cluster  string
	options  options
	network  *adsclient.Network // nil: the system's
	recorder stats.MetricsRecorder
}

// Start implements discovery.Source. A mistake in an option or the bootstrap is an
// error.
func (s source) Start(r discovery.Receiver) (discovery.Watch, error) {
	if err := s.options.check(); err != nil {
		return nil, err
	}
	servers, err := s.servers()
	if err != nil {
		return nil, err
	}
	w := &watch{receiver: r, news: make(chan news, 1), done: make(chan struct{})}
	target := adsclient.Target{Servers: servers, ReachabilityOnly: s.options.reachabilityOnly, Cluster: s.cluster}
	w.following = adsclient.Follow(target, w, s.recorder)
	go w.run()
	return w, nil
}

// servers returns how to reach the management servers, in order. The bootstrap names
// them if the target does not.
func (s source) servers() ([]adsclient.Server, error) {
	boot, err := loadBootstrap()
	if err != nil {
		return nil, err
	}
	node := s.options.node
	if node == nil {
		node = boot.nodeOrDefault()
	}
	var servers []adsclient.Server
	add := func(host, uri string) error {
		c, err := s.options.credentialsFor(host, uri, boot)
		server := adsclient.Server{
			URI:         uri,
			Credentials: c.transport,
			Identity:    c.identity,
			Node:        node,
			MaxResponse: s.options.maxResponse,
			Validate:    validate,
			DialOptions: s.options.dialOptions,
		}
		servers = append(servers, server.Within(s.network))
		return err
	}
	for _, host := range s.hosts {
		if err := add(host, "dns:///"+host); err != nil {
			return nil, err
		}
	}
	if len(s.hosts) > 0 {
		return servers, nil
	}
	for _, server := range boot.servers {
		if err := add("", server.uri); err != nil {
			return nil, err
		}
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("the target names no server, and neither does an xDS bootstrap (%s); want eds://server:port/cluster", bootstrapFileVar)
	}
	return servers, nil
}

// validate says what is wrong with a resource.
func validate(m proto.Message) error {
	switch m := m.(type) {
	case *endpointv3.ClusterLoadAssignment:
		return topology.Validate(m)
	default:
		return fmt.Errorf("a %T is not expected", m)
	}
}

// watch passes on the endpoints of one cluster. The shared stream must not wait for a
// channel, so its calls only leave news, and a goroutine passes on the latest.
type watch struct {
	receiver  discovery.Receiver
	following *adsclient.Following
	news      chan news // holds what was not passed on yet
	done      chan struct{}
	close     sync.Once
}

// news is a cluster, or the reason why no good one is known.
type news struct {
	cluster *endpointv3.ClusterLoadAssignment
	err     error
}

// Endpoints implements adsclient.Follower.
func (w *watch) Endpoints(cluster *endpointv3.ClusterLoadAssignment) { w.leave(news{cluster: cluster}) }

// Unknown implements adsclient.Follower.
func (w *watch) Unknown(err error) { w.leave(news{err: err}) }

// leave replaces older news. One goroutine at a time calls it.
func (w *watch) leave(n news) {
	select {
	case <-w.news:
	default:
	}
	w.news <- n
}

func (w *watch) run() {
	for {
		select {
		case <-w.done:
			return
		case n := <-w.news:
			if n.err != nil {
				w.receiver.Fail(n.err)
			} else {
				_ = w.receiver.Update(discovery.Answer{Cluster: n.cluster}) // the server sends what is new unasked
			}
		}
	}
}

// Confirmed returns when the server in use was last heard: what it sent stays in use
// without it.
func (w *watch) Confirmed() time.Time { return w.following.Heard() }

// Close implements discovery.Watch.
func (w *watch) Close() {
	w.close.Do(func() {
		w.following.Stop()
		close(w.done)
	})
}
