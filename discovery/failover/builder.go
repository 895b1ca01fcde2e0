package failover

import (
	"errors"
	"fmt"
	"net/http"

	_ "google.golang.org/grpc" // registers dns, passthrough and unix, for Validate without a channel
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/svcconfig"
)

// Scheme is the scheme of the targets that this package resolves.
const Scheme = "failover"

var logger = grpclog.Component("understudy")

func init() { resolver.Register(NewBuilder()) }

// Option changes how a Builder works.
type Option func(*builder)

// WithResolvers makes the schemes of builders available to parts, before those
// that are registered globally. A channel's own grpc.WithResolvers are not known
// to the resolvers of parts.
func WithResolvers(builders ...resolver.Builder) Option {
	return func(b *builder) { b.resolvers = append(b.resolvers, builders...) }
}

// WithServiceConfig gives channels the service config json, without which they
// have none: a resolver's replaces the one of grpc.WithDefaultServiceConfig. It may
// hold everything but loadBalancingConfig and loadBalancingPolicy, which the
// resolver sets. The default is none. A config with a mistake fails the first call.
func WithServiceConfig(json string) Option {
	return func(b *builder) { b.serviceConfig = json }
}

// WithLocalDNSResolution looks up the names of DNS parts in this process even
// where a proxy would do it, as grpc.WithLocalDNSResolution does for a channel to
// one target. It has no effect where no proxy is configured.
func WithLocalDNSResolution() Option {
	return func(b *builder) { b.localDNS = true }
}

// NewBuilder returns a builder for [Scheme], to be registered with
// resolver.Register in place of the one that importing this package registers, or
// given to one channel with grpc.WithResolvers. It also implements
// resolver.AuthorityOverrider. It is safe for concurrent use if the builders given
// to it are.
func NewBuilder(opts ...Option) resolver.Builder {
	b := &builder{proxy: http.ProxyFromEnvironment}
	for _, opt := range opts {
		opt(b)
	}
	return b
}

// Validate returns an error that says what is wrong with target, which is to be
// resolved by a builder with the given options; it is the one that the first call on
// a channel to that target fails with. It looks nothing up. Mistakes that only a
// channel can tell are left to the first call: those in the fields of the service
// config, and those that the resolver of a part finds when it is built.
func Validate(target string, opts ...Option) error {
	b := NewBuilder(opts...).(*builder)
	u, err := parseURL(target)
	if err != nil {
		return err
	}
	if _, err := b.parse(*u); err != nil {
		return err
	}
	if err := svcconfig.Check(b.serviceConfig); err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	return nil
}

type builder struct {
	resolvers     []resolver.Builder
	serviceConfig string
	localDNS      bool
	proxy         proxyFunc
}

// Scheme implements resolver.Builder.
func (*builder) Scheme() string { return Scheme }

// OverrideAuthority implements resolver.AuthorityOverrider: the authority is the
// first part's. A target that does not parse fails in Build, so there it does not
// matter what is returned.
func (b *builder) OverrideAuthority(target resolver.Target) string {
	parts, err := b.parse(target.URL)
	if err != nil {
		return Scheme
	}
	return parts[0].authority
}

// Build implements resolver.Builder. It fails where the target, the service config
// or one of the parts' resolvers has a mistake, and where the channel disables
// service configs.
func (b *builder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if opts.DisableServiceConfig {
		return nil, errors.New("failover: the channel disables service configs (grpc.WithDisableServiceConfig), and the order of the parts is sent in one")
	}
	parts, err := b.parse(target.URL)
	if err != nil {
		return nil, err
	}
	if err := b.route(target, parts, opts); err != nil {
		return nil, err
	}
	r := newMultiResolver(b, parts, cc, !credsCarryName(opts))
	if err := r.checkServiceConfig(); err != nil {
		return nil, err
	}
	if err := r.start(opts); err != nil {
		return nil, err
	}
	return r, nil
}
