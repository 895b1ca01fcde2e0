package file

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/authority"
	"github.com/understudy-lb/understudy/internal/svcconfig"
)

// Scheme is the scheme of the targets of this package.
const Scheme = "file"

func init() { resolver.Register(NewBuilder()) }

// Option is an option of NewBuilder.
type Option func(*builder)

// WithServiceConfig gives the service config, in JSON, that is sent to the channel
// with the endpoints: methodConfig, retryThrottling, healthCheckConfig. (gRPC does not
// merge a default service config with that of a resolver, it drops it.) Load balancing
// is the resolver's: Build fails if the config has loadBalancingConfig or
// loadBalancingPolicy, or is not valid.
func WithServiceConfig(json string) Option {
	return func(b *builder) { b.serviceConfig = json }
}

// NewBuilder returns a builder for grpc.WithResolvers, which then takes the place of
// the one, without options, that this package registers when it is imported. What is
// wrong with an option is said by Build. It is safe for concurrent use.
func NewBuilder(opts ...Option) resolver.Builder {
	b := &builder{}
	for _, opt := range opts {
		opt(b)
	}
	return b
}

type builder struct{ serviceConfig string }

// Scheme returns Scheme.
func (*builder) Scheme() string { return Scheme }

// OverrideAuthority returns the target's ?authority=NAME, or else the name of the
// file without its extension, percent-encoded.
func (*builder) OverrideAuthority(target resolver.Target) string {
	path, name, err := parseTarget(target)
	switch {
	case err != nil:
		path = target.Endpoint() // Build says what is wrong
		fallthrough
	case name == "":
		name = nameOf(path)
	}
	return authority.Encode(name)
}

// Build starts to watch the target's file, which need not exist yet. It fails if the
// target or the service config is not as it should be, or if the channel has service
// configs disabled.
func (b *builder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if opts.DisableServiceConfig {
		return nil, errors.New("file: the load-balancing policy comes with the endpoints, in the service config, which this channel disables (grpc.WithDisableServiceConfig, or the target is part of another)")
	}
	path, _, err := parseTarget(target)
	if err != nil {
		return nil, err
	}
	if err := b.checkServiceConfig(cc); err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	r := newResolver(cc, path, b.serviceConfig)
	go r.run()
	return r, nil
}

func (b *builder) checkServiceConfig(cc resolver.ClientConn) error {
	if err := svcconfig.Check(b.serviceConfig); err != nil {
		return err
	}
	if b.serviceConfig == "" {
		return nil
	}
	if parsed := cc.ParseServiceConfig(b.serviceConfig); parsed.Err != nil {
		return fmt.Errorf("service config: %v", parsed.Err) // a status in it would end waiting calls
	}
	return nil
}
