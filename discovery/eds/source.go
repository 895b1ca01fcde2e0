package eds

import (
	"fmt"
	"sync"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/experimental/stats"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/authority"
	"github.com/understudy-lb/understudy/topology"
)

// parts reads a target.
func parts(t *discovery.Target) ([]discovery.Part, error) {
	host, cluster, err := parseTarget(t.Target)
	if err != nil {
		return nil, err
	}
	s := source{host, cluster, discovery.OwnOptions(t, options{maxResponse: defaultMaxResponse}), t.BuildOptions.MetricsRecorder}
	return []discovery.Part{{Source: s, Authority: authority.Encode(cluster)}}, nil
}

// source finds out the endpoints of a cluster.
type source struct {
	host, cluster string
	options       options
	recorder      stats.MetricsRecorder
}

// Start implements discovery.Source. An option or a bootstrap that is not as it should
// be is an error.
func (s source) Start(r discovery.Receiver) (discovery.Watch, error) {
	if err := s.options.check(); err != nil {
		return nil, err
	}
	server, err := s.server()
	if err != nil {
		return nil, err
	}
	w := &watch{receiver: r, server: server, news: make(chan news, 1), done: make(chan struct{})}
	w.cancel = adsclient.Watch(server, s.cluster, w, s.recorder)
	go w.run()
	return w, nil
}

// server returns how to reach the management server, which the bootstrap names if the
// target does not.
func (s source) server() (adsclient.Server, error) {
	boot, err := loadBootstrap()
	if err != nil {
		return adsclient.Server{}, err
	}
	server := adsclient.Server{
		URI:         "dns:///" + s.host,
		Node:        s.options.node,
		MaxResponse: s.options.maxResponse,
		Validate:    topology.Validate,
		DialOptions: s.options.dialOptions,
	}
	if server.Node == nil {
		server.Node = boot.nodeOrDefault()
	}
	if s.host == "" {
		if len(boot.servers) == 0 {
			return server, fmt.Errorf("the target names no server, and neither does an xDS bootstrap (%s); want eds://server:port/cluster", bootstrapFileVar)
		}
		server.URI = boot.servers[0].uri
	}
	c, err := s.options.credentialsFor(s.host, server.URI, boot)
	server.Credentials, server.Identity = c.transport, c.identity
	return server, err
}

// watch passes on the endpoints of one cluster. The stream, which is shared, must not
// wait for a channel: its calls only leave news, and a goroutine passes on the last.
type watch struct {
	receiver discovery.Receiver
	server   adsclient.Server
	cancel   func()
	news     chan news // holds what was not passed on yet
	done     chan struct{}
	close    sync.Once
}

// news is a cluster or, while no good one is known, why.
type news struct {
	cluster *endpointv3.ClusterLoadAssignment
	err     error
}

// Endpoints implements adsclient.Watcher.
func (w *watch) Endpoints(cluster *endpointv3.ClusterLoadAssignment) { w.leave(news{cluster: cluster}) }

// Unknown implements adsclient.Watcher.
func (w *watch) Unknown(err error) { w.leave(news{err: err}) }

// leave takes the place of older news. It is called by one goroutine at a time.
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

// Confirmed says when the server was last heard: what it sent is used on without it.
func (w *watch) Confirmed() time.Time { return adsclient.Heard(w.server) }

// Close implements discovery.Watch.
func (w *watch) Close() {
	w.close.Do(func() {
		w.cancel()
		close(w.done)
	})
}
