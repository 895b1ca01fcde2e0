package failover

import (
	"net/http"

	_ "google.golang.org/grpc" // registers dns, passthrough and unix, to read targets without a channel
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

// options are the options of this source.
type options struct {
	resolvers []resolver.Builder
	localDNS  bool
	proxy     proxyFunc
}

// WithResolvers makes the schemes of builders available to parts, before those
// that are registered globally. A channel's own grpc.WithResolvers are not known
// to the resolvers of parts.
func WithResolvers(builders ...resolver.Builder) discovery.SourceOption {
	return discovery.OwnOption(func(o *options) { o.resolvers = append(o.resolvers, builders...) })
}

// WithLocalDNSResolution looks up the names of DNS parts in this process even
// where a proxy would do it, as grpc.WithLocalDNSResolution does for a channel to
// one target. It has no effect where no proxy is configured.
func WithLocalDNSResolution() discovery.SourceOption {
	return discovery.OwnOption(func(o *options) { o.localDNS = true })
}

// unlessAsked is the Refresh of DNS parts by default.
var unlessAsked = discovery.Refresh{RemoveAfter: 2}

// parts reads a target.
func parts(t *discovery.Target) ([]discovery.Mechanism, error) {
	if _, err := t.Refresh(unlessAsked); err != nil { // the parts read it again
		return nil, err
	}
	l := list{Target: t, options: discovery.OwnOptions(t, options{proxy: http.ProxyFromEnvironment})}
	return l.parse()
}

// grpcs holds the schemes of gRPC's own resolvers. They read no query, so this package
// may.
var grpcs = map[string]bool{"dns": true, "passthrough": true, "unix": true, "unix-abstract": true}

// within returns the parts of an entry of ours. They have names of their own if they are
// several.
func (l *list) within(target resolver.Target, builder resolver.Builder) ([]discovery.Mechanism, error) {
	outer := *l.Target
	if outer.BuildOptions.Authority == l.first {
		// It is not one that the user set, which would hold for every part.
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

// resolved returns the part whose endpoints come from a resolver of gRPC's kind.
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

// part is an entry of the list that a resolver of gRPC's kind resolves.
type part struct {
	name      string // for the log
	target    resolver.Target
	authority string // of a channel to this target alone
}

// nameOf returns what the log calls a part.
func nameOf(target resolver.Target) string {
	target.URL.RawQuery = ""
	return target.URL.Redacted()
}

// authorityOf returns the authority that a channel to target alone would have, if
// neither its credentials nor an option gave one.
func authorityOf(builder resolver.Builder, target resolver.Target) string {
	if overrider, ok := builder.(resolver.AuthorityOverrider); ok {
		return overrider.OverrideAuthority(target)
	}
	return xnet.AuthorityOfEndpoint(target.Endpoint())
}

// source finds the endpoints of one part by its resolver, unless a proxy does it.
type source struct {
	discovery.Source // the part's resolver
	part             part
	options          options
	list             string // the endpoint of the whole target
	dialer           bool   // the channel has one of its own
}

// Start implements discovery.Source.
func (s source) Start(r *discovery.Receiver) (discovery.Started, error) {
	way, err := s.route()
	switch {
	case err != nil:
		return discovery.Started{}, err
	case way.byProxy:
		// An error is ignored: there is no other answer.
		_ = r.Update(answerWith(way.address))
		return discovery.Started{}, nil
	case way.address != "":
		r = r.With(discovery.Hooks{Update: direct{r, way.address, s.options.proxy}.update})
	}
	return s.Source.Start(r)
}

// Check implements discovery.Source.
func (s source) Check(read bool) error {
	if _, err := s.route(); err != nil {
		return err
	}
	return s.Source.Check(read)
}
