package eds

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/adsclient"
	"github.com/understudy-lb/understudy/internal/authority"
	"github.com/understudy-lb/understudy/topology"
)

// Scheme is the scheme of the targets of this package.
const Scheme = "eds"

func init() { resolver.Register(NewBuilder()) }

// NewBuilder returns a builder for grpc.WithResolvers, which then takes the place
// of the one, without options, that this package registers when it is imported.
// What is wrong with an option is said by Build. It is safe for concurrent use.
func NewBuilder(opts ...Option) resolver.Builder {
	b := &builder{options: options{maxResponse: defaultMaxResponse}}
	for _, opt := range opts {
		opt(&b.options)
	}
	return b
}

type builder struct{ options options }

// Scheme returns Scheme.
func (*builder) Scheme() string { return Scheme }

// OverrideAuthority returns the name of the cluster, percent-encoded, which is what
// the certificates of its endpoints are verified against.
func (*builder) OverrideAuthority(target resolver.Target) string {
	return authority.Encode(clusterOf(target))
}

// Build starts to watch the cluster. It fails if the target, an option or the
// bootstrap is not as it should be, or if the channel has service configs disabled.
func (b *builder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if opts.DisableServiceConfig {
		return nil, errors.New("eds: the load-balancing policy comes with the endpoints, in the service config, which this channel disables (grpc.WithDisableServiceConfig, or the target is part of another)")
	}
	if err := b.options.check(); err != nil {
		return nil, fmt.Errorf("eds: %w", err)
	}
	host, cluster, err := parseTarget(target)
	if err != nil {
		return nil, err
	}
	server, err := b.server(host)
	if err != nil {
		return nil, fmt.Errorf("eds: %w", err)
	}
	r := newResolver(cc, cluster, b.options.serviceConfig)
	r.start(adsclient.Watch(server, cluster, r, opts.MetricsRecorder))
	return r, nil
}

// server returns how to reach the management server at host, or the one that the
// bootstrap names if host is empty.
func (b *builder) server(host string) (adsclient.Server, error) {
	boot, err := loadBootstrap()
	if err != nil {
		return adsclient.Server{}, err
	}
	server := adsclient.Server{
		URI:         "dns:///" + host,
		Node:        b.options.node,
		MaxResponse: b.options.maxResponse,
		Validate:    topology.Validate,
		DialOptions: b.options.dialOptions,
	}
	if server.Node == nil {
		server.Node = boot.nodeOrDefault()
	}
	if host == "" {
		if len(boot.servers) == 0 {
			return server, fmt.Errorf("the target names no server, and neither does an xDS bootstrap (%s); want eds://server:port/cluster", bootstrapFileVar)
		}
		server.URI = boot.servers[0].uri
	}
	c, err := b.options.credentialsFor(host, server.URI, boot)
	if err != nil {
		return server, err
	}
	server.Credentials, server.Identity = c.transport, c.identity
	return server, nil
}
