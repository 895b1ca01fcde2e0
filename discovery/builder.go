package discovery

import (
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc/resolver"

	// The policies that a generated config names, and those below them.
	_ "github.com/understudy-lb/understudy/drop"
	"github.com/understudy-lb/understudy/internal/authority"
	"github.com/understudy-lb/understudy/internal/feed"
	"github.com/understudy-lb/understudy/internal/svcconfig"
	_ "github.com/understudy-lb/understudy/outlierdetection"
	_ "github.com/understudy-lb/understudy/pickfirst"
	_ "github.com/understudy-lb/understudy/priority"
	_ "github.com/understudy-lb/understudy/weightedroundrobin"
	_ "github.com/understudy-lb/understudy/weightedtarget"
)

// Parser reads a target and returns where its endpoints come from, in priority order:
// all priorities of the first part, then those of the second, and so on. It starts
// nothing, because it is also called for the authority alone. Its errors say nothing of
// the scheme, which is put before them.
type Parser func(*Target) ([]Part, error)

// Builder makes resolvers of sources. It is a resolver.Builder and a
// resolver.AuthorityOverrider, and safe for concurrent use.
type Builder struct {
	scheme  string
	parse   Parser
	options options
}

// NewBuilder returns a builder for targets of a scheme, for grpc.WithResolvers or
// Register.
func NewBuilder(scheme string, parse Parser, opts ...Option) *Builder {
	return (&Builder{scheme: scheme, parse: parse}).With(opts...)
}

// With returns a builder with opts in addition; b stays as it is.
func (b *Builder) With(opts ...Option) *Builder {
	more := *b
	for _, opt := range opts {
		opt(&more.options)
	}
	return &more
}

// known are the builders that were registered, at most one a scheme.
var known struct {
	mu       sync.Mutex
	builders []*Builder
}

// Register makes b known: to all channels of the process, as resolver.Register does,
// and to understudy.With. As that it is to be called in an init function.
func Register(b *Builder) {
	resolver.Register(b)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.builders = slices.DeleteFunc(known.builders, func(other *Builder) bool { return other.scheme == b.scheme })
	known.builders = append(known.builders, b)
}

// Registered returns every builder that is registered now, with opts in addition.
func Registered(opts ...Option) []resolver.Builder {
	known.mu.Lock()
	defer known.mu.Unlock()
	var builders []resolver.Builder
	for _, b := range known.builders {
		builders = append(builders, b.With(opts...))
	}
	return builders
}

// Scheme implements resolver.Builder.
func (b *Builder) Scheme() string { return b.scheme }

// OverrideAuthority implements resolver.AuthorityOverrider: the authority is that of the
// target's parameter or the option, or else the first part's. For a target with a
// mistake it does not matter, since Build fails.
func (b *Builder) OverrideAuthority(target resolver.Target) string {
	t, parts, err := b.read(Target{Target: target, Channel: target})
	switch {
	case err != nil:
		return b.scheme
	case t.options.authority != "":
		return authority.Encode(t.options.authority)
	case parts[0].Authority != "":
		return parts[0].Authority
	}
	return authority.OfEndpoint(t.Endpoint())
}

// Validate returns the error that the first call on a channel to target would fail
// with. It looks nothing up. Mistakes that only a channel can tell are left to the
// first call: those in the fields of the service config, and those that a source finds
// when it is started.
func (b *Builder) Validate(target resolver.Target) error {
	_, _, err := b.read(Target{Target: target, Channel: target})
	if err == nil {
		err = svcconfig.Check(b.options.serviceConfig)
	}
	return b.prefixed(err)
}

// read reads a channel's target.
func (b *Builder) read(t Target) (*Target, []Part, error) {
	t.options = b.options
	return b.readWith(t, parameters)
}

// readWith reads a target whose options are set, in which these parameters may be given
// beside those of its source.
func (b *Builder) readWith(t Target, known map[string]func(*options, string) error) (*Target, []Part, error) {
	t.known = known
	if err := t.readQuery(); err != nil {
		return nil, nil, err
	}
	parts, err := b.parse(&t)
	if err == nil {
		err = t.checkQuery()
	}
	if err == nil {
		err = checkParts(parts)
	}
	return &t, parts, err
}

// prefixed returns err, if there is one, with the scheme before it and without what it
// wraps: a status would end calls that wait for ready.
func (b *Builder) prefixed(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(b.scheme + ": " + err.Error())
}

// Build implements resolver.Builder. It fails where the target, an option or the
// service config has a mistake, and where the channel disables service configs.
func (b *Builder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if opts.DisableServiceConfig {
		return nil, b.prefixed(errors.New("the load-balancing policy comes with the endpoints, in the service config, which this channel disables (grpc.WithDisableServiceConfig, or the target is part of another)"))
	}
	t, parts, err := b.read(Target{Target: target, Channel: target, ClientConn: cc, BuildOptions: opts})
	if err != nil {
		return nil, b.prefixed(err)
	}
	config := feed.Config{
		Scheme:        b.scheme,
		Target:        target.URL.Redacted(),
		ServiceConfig: t.options.serviceConfig,
		Logger:        t.options.logger,
		Settings:      t.options.settings,
	}
	carried := credsCarryName(opts)
	for _, p := range parts {
		m := p.mechanism()
		m.Key, m.TrustNames = keptBy{b, config.Target, p.Name}, p.TrustNames && !carried
		if p.Name != "" && !carried && (p.own || t.options.authority == "") {
			m.ServerName = p.Authority
		}
		config.Mechanisms = append(config.Mechanisms, m)
	}
	r, err := feed.Start(cc, config)
	if err != nil {
		return nil, b.prefixed(err)
	}
	return r, nil
}

// keptBy is what the last good answer is kept by while a channel is idle. The builder
// stands for the source, its options and so its credentials: a channel that is used
// again has the one it had before.
type keptBy struct {
	builder      *Builder
	target, part string
}

// credsCarryName reports whether the channel's credentials have a server name of their
// own, which an address's would override: gRPC hands the latter to the handshake in its
// place.
func credsCarryName(opts resolver.BuildOptions) bool {
	creds := opts.DialCreds
	if creds == nil && opts.CredsBundle != nil {
		creds = opts.CredsBundle.TransportCredentials()
	}
	return creds != nil && creds.Info().ServerName != ""
}
