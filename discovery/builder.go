package discovery

import (
	"crypto/sha256"
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc/resolver"

	// The policies that a generated config names, and those below them.
	_ "github.com/understudy-lb/understudy/drop"
	"github.com/understudy-lb/understudy/internal/authority"
	"github.com/understudy-lb/understudy/internal/feed"
	"github.com/understudy-lb/understudy/internal/secret"
	"github.com/understudy-lb/understudy/internal/svcconfig"
	_ "github.com/understudy-lb/understudy/outlierdetection"
	_ "github.com/understudy-lb/understudy/pickfirst"
	_ "github.com/understudy-lb/understudy/priority"
	_ "github.com/understudy-lb/understudy/weightedroundrobin"
	_ "github.com/understudy-lb/understudy/weightedtarget"
)

// Parser reads a target and returns its parts in priority order: all priorities of the
// first part come before those of the second, and so on. It starts nothing, because it
// is also called for the authority alone, and it may be called from several goroutines.
// Its errors need not name the scheme: the builder puts it before them.
type Parser func(*Target) ([]Part, error)

// Builder makes resolvers of sources. It is a resolver.Builder and a
// resolver.AuthorityOverrider, and safe for concurrent use.
type Builder struct {
	scheme  string
	parse   Parser
	options options
}

// NewBuilder returns a builder for targets of the scheme, for grpc.WithResolvers or
// Register.
func NewBuilder(scheme string, parse Parser, opts ...Option) *Builder {
	return (&Builder{scheme: scheme, parse: parse}).With(opts...)
}

// With returns a copy of b with opts added.
func (b *Builder) With(opts ...Option) *Builder {
	more := *b
	for _, opt := range opts {
		opt(&more.options)
	}
	return &more
}

// known holds the registered builders, at most one for each scheme.
var known struct {
	mu       sync.Mutex
	builders []*Builder
}

// Register makes b known to all channels of the process, as resolver.Register does, and
// to understudy.With. It replaces an earlier builder of the same scheme. Call it in an
// init function only: gRPC's registry has no lock.
func Register(b *Builder) {
	resolver.Register(b)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.builders = slices.DeleteFunc(known.builders, func(other *Builder) bool { return other.scheme == b.scheme })
	known.builders = append(known.builders, b)
}

// Registered returns all builders that are registered now, with opts added.
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

// OverrideAuthority implements resolver.AuthorityOverrider. The authority is the
// target's parameter, or else the option's, or else the first part's. A target with a
// mistake gets any, since Build fails.
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
// with. It looks nothing up. The first call alone finds mistakes in the fields of the
// service config, and those that a source finds when it is started.
func (b *Builder) Validate(target resolver.Target) error {
	_, _, err := b.read(Target{Target: target, Channel: target})
	if err == nil {
		err = svcconfig.Check(b.options.serviceConfig)
	}
	return b.prefixed(err, target)
}

// read reads a channel's target.
func (b *Builder) read(t Target) (*Target, []Part, error) {
	t.options = b.options
	return b.readWith(t, parameters)
}

// readWith reads a target whose options are set. It takes the known parameters beside
// those of the source.
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

// prefixed puts the scheme before err, and hides the secrets of the target. It wraps nothing: a
// status would end calls that wait for ready.
func (b *Builder) prefixed(err error, target resolver.Target) error {
	if err == nil {
		return nil
	}
	return errors.New(b.scheme + ": " + secret.In(err.Error(), target.URL))
}

// Build implements resolver.Builder. It fails where the target, an option or the
// service config has a mistake, and where the channel disables service configs.
func (b *Builder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if opts.DisableServiceConfig {
		return nil, b.prefixed(errors.New("the load-balancing policy comes with the endpoints, in the service config, which this channel disables (grpc.WithDisableServiceConfig, or the target is part of another)"), target)
	}
	conn := newConn(cc)
	t, parts, err := b.read(Target{Target: target, Channel: target, ClientConn: conn, BuildOptions: opts})
	if err != nil {
		return nil, b.prefixed(err, target)
	}
	shown := secret.Target(target.URL)
	config := feed.Config{
		Scheme:        b.scheme,
		Target:        shown.String(),
		ServiceConfig: t.options.serviceConfig,
		Logger:        t.options.logger,
		Recorder:      opts.MetricsRecorder,
		Label:         resolver.Target{URL: shown}.String(),
		Hide:          func(text string) string { return secret.In(text, target.URL) },
		Settings:      t.options.settings,
	}
	carried, key := credsCarryName(opts), sha256.Sum256([]byte(target.URL.String()))
	for _, p := range parts {
		m := p.mechanism()
		m.Key, m.TrustNames = keptBy{b, key, p.Name}, p.TrustNames && !carried && !p.own && t.options.authority == ""
		if p.Name != "" && !carried && (p.own || t.options.authority == "") {
			m.ServerName = p.Authority
		}
		config.Mechanisms = append(config.Mechanisms, m)
	}
	f, err := feed.Start(cc, config)
	if err != nil {
		conn.close() // what was started of it may be kept
		return nil, b.prefixed(err, target)
	}
	return resolving{f, conn}, nil
}

// keptBy is the key of the last good answer while a channel is idle. The builder stands
// for the source and its options, credentials among them: a channel that is used again
// still has the same builder. The target is hashed, with its passwords and tokens: who has
// others may not get the same endpoints.
type keptBy struct {
	builder *Builder
	target  [sha256.Size]byte
	part    string
}

// credsCarryName reports whether the channel's credentials have a server name. An
// address's own would override it: gRPC hands that one to the handshake.
func credsCarryName(opts resolver.BuildOptions) bool {
	creds := opts.DialCreds
	if creds == nil && opts.CredsBundle != nil {
		creds = opts.CredsBundle.TransportCredentials()
	}
	return creds != nil && creds.Info().ServerName != ""
}
