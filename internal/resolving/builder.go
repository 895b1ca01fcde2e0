// Package resolving makes resolvers of the sources of package discovery. Whoever registers a
// source imports it, or a package that does.
package resolving

import (
	"crypto/sha256"
	"errors"
	"sync"

	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	// The policies that a generated config names, and those below them.
	_ "github.com/understudy-lb/understudy/drop"
	"github.com/understudy-lb/understudy/internal/join"
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/stateattr"
	"github.com/understudy-lb/understudy/internal/topology"
	_ "github.com/understudy-lb/understudy/outlierdetection"
	_ "github.com/understudy-lb/understudy/pickfirst"
	_ "github.com/understudy-lb/understudy/priority"
	_ "github.com/understudy-lb/understudy/weightedroundrobin"
	_ "github.com/understudy-lb/understudy/weightedtarget"
)

var logger = grpclog.Component("understudy")

func init() {
	options.Make = func(scheme string, parse any, given options.Program) options.Builder {
		b := &builder{scheme: scheme, reader: options.NewReader(scheme, parse, given).(reader)}
		if b.finds = b; given.Registered != nil && len(given.Sources) == 0 {
			b.finds = found{given.Registered, given.Authority}
		}
		return b
	}
}

// reader reads the targets of a scheme. Package discovery has it.
type reader interface {
	// Authority returns that of a channel to the target.
	Authority(resolver.Target) string
	// Check says what is wrong with a target.
	Check(target resolver.Target, read bool) error
	// Read returns the parts of a channel's target, with the options that hold for it, and what
	// has no effect. Authority and TrustNames of the parts are those that count.
	Read(discovery.Target) (parts []discovery.Mechanism, given options.Given, notes []string, err error)
	// Prefixed puts the scheme before an error.
	Prefixed(error, resolver.Target) error
}

// builder makes resolvers of sources. It is safe for concurrent use.
type builder struct {
	reader
	scheme string
	finds  any      // equal for builders whose targets lead to the same endpoints
	noted  sync.Map // texts that were logged
}

// Scheme implements resolver.Builder.
func (b *builder) Scheme() string { return b.scheme }

// OverrideAuthority implements resolver.AuthorityOverrider.
func (b *builder) OverrideAuthority(target resolver.Target) string { return b.Authority(target) }

// Reader returns what reads targets, for those within others.
func (b *builder) Reader() any { return b.reader }

// Build implements resolver.Builder. It fails where the target, an option or the
// service config has a mistake, and where the channel disables service configs.
func (b *builder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if opts.DisableServiceConfig {
		return nil, b.Prefixed(errors.New("the load-balancing policy comes with the endpoints, in the service config, which this channel disables (grpc.WithDisableServiceConfig, or the target is part of another)"), target)
	}
	conn := newConn(cc)
	parts, given, err := b.parts(discovery.Target{Target: target, Channel: target, ClientConn: conn, BuildOptions: opts})
	if err != nil {
		return nil, err
	}
	if given.Prefer != "" { // it overrides the parts
		for i := range parts {
			parts[i].Prefer = ""
		}
	}
	if given.Prefer == "none" {
		given.Prefer = ""
	}
	given.Here = newHere(given.Settings, parts, b.note)
	given.ChannelSeed = seedOf(opts)
	inUse, _ := given.InUse.(*stateattr.InUseReporter)
	config := &join.ChannelConfig{
		Config:        b.mechanisms(target, parts, given, credsCarryName(opts)),
		ServiceConfig: given.ServiceConfig,
		Logger:        given.Logger,
		InUse:         inUse,
		Settings:      topology.Settings(given.Settings),
	}
	config.Recorder = opts.MetricsRecorder
	channel, err := join.Start(cc, config)
	if err != nil {
		conn.close() // what was started of it may be kept
		return nil, b.Prefixed(err, target)
	}
	return resolving{channel, conn}, nil
}

// parts reads a target, and logs what has no effect in it.
func (b *builder) parts(target discovery.Target) ([]discovery.Mechanism, options.Given, error) {
	parts, given, notes, err := b.Read(target)
	for _, text := range notes {
		b.note(text)
	}
	return parts, given, b.Prefixed(err, target.Target)
}

// mechanisms returns the parts of a target as the join wants them. carried reports whether the
// credentials carry a server name.
func (b *builder) mechanisms(target resolver.Target, parts []discovery.Mechanism, given options.Given, carried bool) join.Config {
	shown := printable.HideTarget(target.URL)
	config := join.Config{
		Scheme:   b.scheme,
		Target:   shown.String(),
		Hide:     func(text string) string { return printable.HideIn(text, target.URL) },
		Patience: given.FailoverTimeout,
		Label:    resolver.Target{URL: shown}.String(),
	}
	key := sha256.Sum256([]byte(target.URL.String()))
	for _, p := range parts {
		m := join.Mechanism{Mechanism: p, Key: keptBy{b.finds, key, p.Name}, TrustNames: p.TrustNames && !carried}
		m.OutlierDetection = "" // it counts in lists that sources give
		if p.Name != "" && !carried {
			m.ServerName = p.Authority
		}
		config.Mechanisms = append(config.Mechanisms, m)
	}
	return config
}

// note logs a text, once.
func (b *builder) note(text string) {
	if _, again := b.noted.LoadOrStore(text, true); !again {
		logger.Warning(b.scheme + ": " + text)
	}
}

// found is what endpoints depend on beside the target, where a program gives no options of single
// sources.
type found struct {
	registered any
	authority  string
}

// keptBy is the key of the last good answer while a channel is idle. Programs with equal options and
// targets have the same one. Where options of single sources are given, which may be functions and
// credentials, the builder stands for them: a channel that is used again still has the same one. The
// target is hashed, with its passwords and tokens: who has others may not get the same endpoints.
type keptBy struct {
	finds  any
	target [sha256.Size]byte
	part   string
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
