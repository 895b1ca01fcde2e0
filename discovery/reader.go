package discovery

import (
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lbconfig"
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/xnet"
)

// Parser reads a target and returns its parts in priority order: all priorities of the
// first part come before those of the second, and so on. It starts nothing, because it
// is also called for the authority alone, and it may be called from several goroutines.
// Its errors need not name the scheme: the builder puts it before them.
type Parser func(*Target) ([]Mechanism, error)

// Register makes a source known to understudy.NewClient, and to all channels of the process
// as resolver.Register does: parse reads the targets of the scheme. It replaces what was
// registered for the scheme before. Call it in an init function only: gRPC's registry has
// no lock. The program has to import package understudy as well, which has the policies.
func Register(scheme string, parse Parser) {
	options.Register(scheme, parse)
	r := &reader{scheme: scheme, parse: parse}
	resolver.Register(&registered{r, sync.OnceValue(func() options.Builder { return options.Make(scheme, parse, options.Program{}) })})
}

// registered is the builder that gRPC has for a scheme. The one that makes resolvers may be
// linked and not yet initialised, or not linked at all.
type registered struct {
	*reader
	builder func() options.Builder
}

// Scheme implements resolver.Builder.
func (r *registered) Scheme() string { return r.scheme }

// OverrideAuthority implements resolver.AuthorityOverrider.
func (r *registered) OverrideAuthority(target resolver.Target) string { return r.Authority(target) }

// Reader returns what reads targets, for those within others.
func (r *registered) Reader() any { return r.reader }

// Build implements resolver.Builder.
func (r *registered) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if options.Make == nil {
		return nil, r.Prefixed(errors.New("nothing makes a resolver of this source; import github.com/understudy-lb/understudy, for its name or as _"), target)
	}
	return r.builder().Build(target, cc, opts)
}

func init() {
	options.NewReader = func(scheme string, parse any, given options.Program) any {
		read, ok := parse.(Parser)
		if !ok {
			read = parse.(func(*Target) ([]Mechanism, error))
		}
		return &reader{scheme, read, given}
	}
}

// reader reads the targets of a scheme, for internal/resolving. It is safe for concurrent use.
type reader struct {
	scheme string
	parse  Parser
	given  options.Program
}

// Authority returns the authority of a channel to target. It is the
// target's parameter, or else the option's, or else the first part's. A target with a
// mistake gets any, since there will be no channel.
func (r *reader) Authority(target resolver.Target) string {
	t, parts, err := r.readWhole(Target{Target: target, Channel: target})
	switch {
	case err != nil:
		return r.scheme
	case t.given.Authority != "":
		return xnet.EncodeAuthority(t.given.Authority)
	case parts[0].Authority != "":
		return parts[0].Authority
	}
	return xnet.AuthorityOfEndpoint(t.Endpoint())
}

// Check says what is wrong with a target. The first call on a channel alone finds mistakes in the
// fields of the service config, and what only a server knows.
func (r *reader) Check(target resolver.Target, read bool) error {
	_, parts, err := r.readWhole(Target{Target: target, Channel: target})
	if err == nil {
		err = lbconfig.CheckServiceConfig(r.given.ServiceConfig)
	}
	for _, p := range parts {
		if err == nil {
			err = p.Source.Check(read)
		}
	}
	return r.Prefixed(err, target)
}

// Read returns the parts of a channel's target, with the options that hold for it, and what has
// no effect. Authority and TrustNames of the parts are those that count.
func (r *reader) Read(target Target) (parts []Mechanism, given options.Given, notes []string, err error) {
	t, parts, err := r.readWhole(target)
	if err != nil {
		return nil, options.Given{}, nil, err
	}
	parts = slices.Clone(parts)
	for i := range parts {
		p := &parts[i]
		if !p.own && t.given.Authority != "" {
			p.Authority = ""
		}
		p.TrustNames = p.TrustNames && !p.own && t.given.Authority == ""
	}
	return parts, t.given, t.notes, nil
}

// readWhole reads a channel's target.
func (r *reader) readWhole(t Target) (*Target, []Mechanism, error) {
	t.given.Program, t.place, t.asked = r.given, options.Channel, new(sync.Map)
	read, parts, err := r.read(t)
	if err == nil {
		read.notes = append(read.notes, read.unasked()...)
	}
	return read, parts, err
}

// read reads a target whose options and place are set.
func (r *reader) read(t Target) (*Target, []Mechanism, error) {
	if err := t.readQuery(); err != nil {
		return nil, nil, err
	}
	parts, err := r.parse(&t)
	if err == nil {
		err = t.checkQuery()
	}
	if err == nil {
		err = checkParts(parts)
	}
	return &t, parts, err
}

// Prefixed puts the scheme before err, and hides the secrets of the target. It wraps nothing: a
// status would end calls that wait for ready.
func (r *reader) Prefixed(err error, target resolver.Target) error {
	if err == nil {
		return nil
	}
	return errors.New(r.scheme + ": " + printable.HideIn(err.Error(), target.URL))
}
