package failover

import (
	"net/http"

	// This registers the schemes dns, passthrough and unix, so that we can parse targets without a
	// channel.
	_ "google.golang.org/grpc"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	_ "github.com/understudy-lb/understudy/internal/channel/join"
	program "github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/xnet"
)

// Scheme is the scheme of this package's targets.
const Scheme = "failover"

var logger = grpclog.Component("understudy")

func init() { discovery.Register(Scheme, parseTarget) }

type options struct {
	resolvers map[string]resolver.Builder // by scheme
	localDNS  bool
	proxy     proxyFunc
}

// WithResolvers makes the schemes of builders available to the entries of a list. They take
// precedence over globally registered schemes. Note that resolvers passed to the channel with
// grpc.WithResolvers aren't available to the entries.
func WithResolvers(builders ...resolver.Builder) discovery.SourceOption {
	return discovery.OwnOption(func(o *options) {
		for _, b := range builders {
			o.resolvers[b.Scheme()] = b
		}
	})
}

// WithLocalDNSResolution makes this process look up DNS names even if a proxy would otherwise do
// it, just like grpc.WithLocalDNSResolution for a channel to a single target. It has no effect
// without a proxy.
func WithLocalDNSResolution() discovery.SourceOption {
	return discovery.OwnOption(func(o *options) { o.localDNS = true })
}

// noRefresh is the default for DNS names, which we only look up again after a failed connection.
var noRefresh = discovery.Refresh{RemoveAfter: 2}

func parseTarget(t *discovery.Target) ([]discovery.Mechanism, error) {
	t.Refresh(noRefresh) // the entries read these parameters later
	defaults := options{proxy: http.ProxyFromEnvironment, resolvers: make(map[string]resolver.Builder)}
	l := listParser{Target: t, options: discovery.OwnOptions(t, defaults)}
	return l.parse()
}

// grpcSchemes has the schemes of gRPC's own resolvers. They ignore the query of a target, so we can
// use it for parameters.
var grpcSchemes = map[string]bool{"dns": true, "passthrough": true, "unix": true, "unix-abstract": true}

// mechanismsOf returns the discovery mechanisms of one entry. With a source of this module, there
// may be several, with different names.
func (l *listParser) mechanismsOf(target resolver.Target, builder resolver.Builder) ([]discovery.Mechanism, error) {
	outer := *l.Target
	if outer.BuildOptions.Authority == l.firstAuthority {
		// gRPC gives us the first mechanism's authority as the channel's authority. The other
		// mechanisms would take it for one that the user has set.
		outer.BuildOptions.Authority = ""
	}
	_, isOurs := builder.(program.Builder)
	switch {
	case isOurs:
		return outer.Mechanisms(builder, target)
	case grpcSchemes[target.URL.Scheme]:
		parse := func(t *discovery.Target) ([]discovery.Mechanism, error) { return l.resolverMechanism(t, builder) }
		return outer.Mechanisms(program.Make(target.URL.Scheme, parse, program.Program{}), target)
	}
	return l.resolverMechanism(&discovery.Target{Target: target, Channel: outer.Channel, ClientConn: outer.ClientConn, BuildOptions: outer.BuildOptions}, builder)
}

func (l *listParser) resolverMechanism(t *discovery.Target, builder resolver.Builder) ([]discovery.Mechanism, error) {
	authority := xnet.AuthorityOfEndpoint(t.Endpoint())
	if overrider, ok := builder.(resolver.AuthorityOverrider); ok {
		authority = overrider.OverrideAuthority(t.Target)
	}
	opts := t.BuildOptions
	if opts.Authority == "" {
		opts.Authority = authority
	}
	inner := discovery.FromResolver(builder, t.Target, t.ClientConn, opts)
	if t.URL.Scheme == "dns" {
		inner = discovery.Refreshed(inner, t.Refresh(noRefresh))
	}
	s := source{Source: inner, target: t.Target, options: l.options, list: t.Channel.Endpoint(), hasDialer: opts.Dialer != nil}
	return []discovery.Mechanism{{Source: s, Authority: authority}}, nil
}

// source is a gRPC resolver, except that if a proxy looks up the name, the only endpoint is the
// name itself.
type source struct {
	discovery.Source
	target    resolver.Target
	options   options
	list      string // the whole list, which is the endpoint of the channel's target
	hasDialer bool
}

func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	address, byProxy, err := s.route()
	switch {
	case err != nil:
		return discovery.Started{}, err
	case byProxy:
		// If there's an error, we can't do anything about it, since there's no other answer.
		_ = r.Update(answerWith(address))
		return discovery.Started{}, nil
	case address != "":
		to := r
		r = r.With(discovery.Hooks{Update: func(a discovery.Answer) error { return to.Update(s.options.proxy.direct(a, address)) }})
	}
	return s.Source.Start(r)
}

func (s source) Check(parse bool) error {
	if _, _, err := s.route(); err != nil {
		return err
	}
	return s.Source.Check(parse)
}
