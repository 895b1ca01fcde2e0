package understudy

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/config/serviceconfig"
	accept "github.com/understudy-lb/understudy/internal/config/target"
	"github.com/understudy-lb/understudy/internal/lb/pings"
)

// NewClient returns a channel to target. It calls grpc.NewClient with the dial options for opts,
// followed by dialOptions, which must include the transport credentials.
//
//	failover:///us-east.example.com:443,eu-west.example.com:443
//	us-east.example.com:443,eu-west.example.com:443    (the same)
//	file:///etc/endpoints.yaml
//	eds://xds.example.com:18000/payments
//	srv:///payments.example.com
//
// NewClient returns an error if there's a mistake that won't go away by waiting: an invalid target,
// parameter, option or service config, or an eds target without a management server. If a file,
// bootstrap or server can't be read yet, that isn't an error. Calls then wait, or fail with the
// reason.
//
// Settings in dialOptions take precedence over the same settings in opts: grpc.WithKeepaliveParams
// overrides Keepalive, grpc.WithConnectParams overrides MaxConnectBackoff, and a resolver in
// grpc.WithResolvers overrides ours for the same scheme. Note that grpc.WithDefaultServiceConfig
// has no effect, since gRPC ignores it when a resolver sends a service config. Use
// Options.ServiceConfig instead.
func NewClient(target string, opts Options, dialOptions ...grpc.DialOption) (*grpc.ClientConn, error) {
	url, err := check(target, opts, false)
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(url, slices.Concat(opts.overridable(), dialOptions, opts.resolvers())...)
}

// Validate checks a target and options without using the network, e.g. in CI or at startup. It
// returns the same errors as NewClient. It also reads files and returns the errors in them, with
// line and column.
func Validate(target string, opts Options) error {
	_, err := check(target, opts, true)
	return err
}

// DialOptions returns the dial options for programs that call grpc.NewClient themselves. Put them
// first, so that the program's own keepalive overrides the one in o. If o is invalid, calls on the
// channel fail with the reason.
func (o Options) DialOptions() []grpc.DialOption {
	return append(o.overridable(), o.resolvers()...)
}

// ServerKeepalive returns the enforcement policy that servers need to accept keepalive pings from
// clients with these options. Servers without it will close those clients' connections.
func (o Options) ServerKeepalive() grpc.ServerOption {
	return grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime:             o.Keepalive.Time / 2, // a ping can seem early if the one before it was delayed
		PermitWithoutStream: o.Keepalive.PermitWithoutStream,
	})
}

func (o Options) overridable() []grpc.DialOption {
	var all []grpc.DialOption
	if o.Keepalive != (keepalive.ClientParameters{}) {
		all = append(all, grpc.WithKeepaliveParams(o.Keepalive), grpc.WithStatsHandler(pings.New(o.Logger)))
	}
	if o.MaxConnectBackoff > 0 {
		params := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 20 * time.Second}
		params.Backoff.MaxDelay = o.MaxConnectBackoff
		all = append(all, grpc.WithConnectParams(params))
	}
	return all
}

func (o Options) resolvers() []grpc.DialOption {
	// If several resolvers have the same scheme, gRPC uses the first.
	var all []resolver.Builder
	for _, b := range options.Builders(o.program()) {
		all = append(all, b)
	}
	return []grpc.DialOption{grpc.WithResolvers(all...)}
}

func (o Options) serviceConfig() serviceconfig.Options {
	return serviceconfig.Options{
		ServiceConfig: o.ServiceConfig,
		RetryMethods:  o.RetryMethods,
		MaxTokens:     o.RetryThrottling.MaxTokens,
		TokenRatio:    o.RetryThrottling.TokenRatio,
		HealthCheck:   o.HealthCheck,
		HealthService: o.HealthService,
	}
}

func (o Options) program() options.Program {
	config, err := serviceconfig.Make(o.serviceConfig())
	if err == nil {
		err = o.check()
	}
	p := options.Program{ServiceConfig: config, Logger: o.Logger, InUse: o.inUseReporter(), Err: err}
	options.Copy(&p, o)
	for _, source := range o.Sources {
		p.Sources = append(p.Sources, source)
	}
	return p
}

func (o Options) check() error {
	switch {
	case o.Keepalive != (keepalive.ClientParameters{}) && o.Keepalive.Time < 10*time.Second:
		return fmt.Errorf("Keepalive.Time: %v given, want 10s or more, or the zero value for no keepalive: gRPC allows nothing shorter", o.Keepalive.Time)
	case o.RetryThrottling != (RetryThrottling{}) && !(o.RetryThrottling.MaxTokens > 0 && o.RetryThrottling.MaxTokens <= 1000 && o.RetryThrottling.TokenRatio > 0):
		return fmt.Errorf("RetryThrottling: %+v given, want MaxTokens greater than 0 and at most 1000, and TokenRatio greater than 0", o.RetryThrottling)
	case o.OutlierDetection < AsClusterSays || o.OutlierDetection > Off:
		return fmt.Errorf("OutlierDetection: %d given, want AsClusterSays, On or Off", o.OutlierDetection)
	}
	return options.Check(o, options.ByField)
}

// check returns the target as a URL that gRPC accepts. If read is set, we also read files that the
// target names.
func check(target string, opts Options, read bool) (string, error) {
	url, err := accept.Accept(options.Builders(opts.program()), target, read)
	if err == nil {
		config, _ := serviceconfig.Make(opts.serviceConfig()) // Accept has already returned any error
		err = serviceconfig.Check(config)
	}
	if err != nil {
		return "", fmt.Errorf("understudy: %w", err)
	}
	return url, nil
}
