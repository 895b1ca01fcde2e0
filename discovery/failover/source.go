package failover

import (
	"net/http"

	// Registers the schemes dns, passthrough and unix, so that targets can be parsed without a
	// channel.
	_ "google.golang.org/grpc"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	program "github.com/understudy-lb/understudy/internal/options"
	_ "github.com/understudy-lb/understudy/internal/resolving"
	"github.com/understudy-lb/understudy/internal/xnet"
)

// Scheme is the scheme of the targets that this package resolves.
const Scheme = "failover"

var logger = grpclog.Component("understudy")

func init() { discovery.Register(Scheme, parts) }

type options struct {
	resolvers []resolver.Builder
	localDNS  bool
	proxy     proxyFunc
}

// WithResolvers makes the schemes of builders available to the entries of a list. They take
// precedence over globally registered schemes. The channel's own grpc.WithResolvers are not
// available to the entries.
func WithResolvers(builders ...resolver.Builder) discovery.SourceOption {
	return discovery.OwnOption(func(o *options) { o.resolvers = append(o.resolvers, builders...) })
}

// WithLocalDNSResolution looks up DNS names in this process even if a proxy would otherwise look
// them up, like grpc.WithLocalDNSResolution for a channel to one target. It has no effect without a
// proxy.
func WithLocalDNSResolution() discovery.SourceOption {
	return discovery.OwnOption(func(o *options) { o.localDNS = true })
}

// unlessAsked is the default Refresh of DNS names: names are looked up only when a connection
// fails.
var unlessAsked = discovery.Refresh{RemoveAfter: 2}

func parts(t *discovery.Target) ([]discovery.Mechanism, error) {
	if _, err := t.Refresh(unlessAsked); err != nil { // only a check; the entries read the parameters themselves
		return nil, err
	}
	l := list{Target: t, options: discovery.OwnOptions(t, options{proxy: http.ProxyFromEnvironment})}
	return l.parse()
}

// grpcs holds the schemes of gRPC's own resolvers. They ignore the query of a target, so this
// package can use the query for parameters.
var grpcs = map[string]bool{"dns": true, "passthrough": true, "unix": true, "unix-abstract": true}

// within returns the discovery mechanisms of one entry. An entry with a source of this module may
// have several, each with its own name.
func (l *list) within(target resolver.Target, builder resolver.Builder) ([]discovery.Mechanism, error) {
	outer := *l.Target
	if outer.BuildOptions.Authority == l.first {
		// As the channel's authority, gRPC passes that of the first discovery mechanism. For the other
		// mechanisms, it must not count as an authority that the user has set.
		outer.BuildOptions.Authority = ""
	}
	_, ours := builder.(program.Builder)
	switch {
	case ours:
		return outer.Parts(builder, target)
	case grpcs[target.URL.Scheme]:
		read := func(t *discovery.Target) ([]discovery.Mechanism, error) { return l.resolved(t, builder) }
		return outer.Parts(program.Make(target.URL.Scheme, read, program.Program{}), target)
	}
	return l.resolved(&discovery.Target{Target: target, Channel: outer.Channel, ClientConn: outer.ClientConn, BuildOptions: outer.BuildOptions}, builder)
}

func (l *list) resolved(t *discovery.Target, builder resolver.Builder) ([]discovery.Mechanism, error) {
	p := part{name: nameOf(t.Target), target: t.Target, authority: authorityOf(builder, t.Target)}
	opts := t.BuildOptions
	if opts.Authority == "" {
		opts.Authority = p.authority
	}
	found := discovery.FromResolver(builder, t.Target, t.ClientConn, opts)
	if t.URL.Scheme == "dns" {
		refresh, err := t.Refresh(unlessAsked)
		if err != nil {
			return nil, err
		}
		if !isAddress(t.Endpoint()) {
			found = discovery.Refreshed(found, refresh)
		}
	}
	s := source{Source: found, part: p, options: l.options, list: t.Channel.Endpoint(), dialer: opts.Dialer != nil}
	return []discovery.Mechanism{{Source: s, Authority: p.authority}}, nil
}

// part is an entry of the list that has a gRPC resolver.
type part struct {
	name      string
	target    resolver.Target
	authority string
}

func nameOf(target resolver.Target) string {
	target.URL.RawQuery = ""
	return target.URL.Redacted()
}

// authorityOf returns the authority that a channel to target alone would have, if no option sets
// one.
func authorityOf(builder resolver.Builder, target resolver.Target) string {
	if overrider, ok := builder.(resolver.AuthorityOverrider); ok {
		return overrider.OverrideAuthority(target)
	}
	return xnet.AuthorityOfEndpoint(target.Endpoint())
}

// source finds the endpoints of an entry with the entry's gRPC resolver. If a proxy looks up the
// name, the name itself is the only endpoint.
type source struct {
	discovery.Source
	part    part
	options options
	list    string // endpoint of the channel's target: the whole list
	dialer  bool
}

func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	way, err := s.route()
	switch {
	case err != nil:
		return discovery.Started{}, err
	case way.byProxy:
		// The error is ignored, because there is no other answer.
		_ = r.Update(answerWith(way.address))
		return discovery.Started{}, nil
	case way.address != "":
		r = r.With(discovery.Hooks{Update: direct{r, way.address, s.options.proxy}.update})
	}
	return s.Source.Start(r)
}

func (s source) Check(read bool) error {
	if _, err := s.route(); err != nil {
		return err
	}
	return s.Source.Check(read)
}
