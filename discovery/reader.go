package discovery

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Parser parses a target and returns its discovery mechanisms in priority order, i.e. all
// priorities of the first mechanism come before those of the second, and so on. It must not start
// anything, because we also call it to determine the authority. It may be called from several
// goroutines. The scheme doesn't have to be in its errors, since the builder adds it as a prefix.
type Parser = func(*Target) ([]Mechanism, error)

// Register registers a source for understudy.NewClient and, like resolver.Register, for all
// channels of the process. parse parses the targets of the scheme. If the scheme has been
// registered before, Register replaces it. Only call it in an init function, because gRPC's
// registry isn't locked. The program must also import package understudy, which has the policies.
func Register(scheme string, parse Parser) {
	options.Register(scheme, parse)
	r := &reader{scheme: scheme, parse: parse}
	resolver.Register(&registeredBuilder{r, sync.OnceValue(func() options.Builder { return options.Make(scheme, parse, options.Program{}) })})
}

// registeredBuilder is what we register with gRPC. It creates the actual builder when that's first
// needed, because package join may not be initialized yet when a source registers, and may not even
// be linked.
type registeredBuilder struct {
	*reader
	builder func() options.Builder
}

func (r *registeredBuilder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if options.Make == nil {
		return nil, r.Prefixed(errors.New("no resolver is available for this source; import github.com/understudy-lb/understudy"), target)
	}
	return r.builder().Build(target, cc, opts)
}

func init() {
	options.NewReader = func(scheme string, parse any, program options.Program) any {
		return &reader{scheme, parse.(Parser), program}
	}
}

// reader parses the targets of a scheme for package join. It's safe for concurrent use.
type reader struct {
	scheme  string
	parse   Parser
	program options.Program
}

func (r *reader) Scheme() string { return r.scheme }

// Reader is how Target.Mechanisms gets at the reader inside a builder.
func (r *reader) Reader() any { return r }

// OverrideAuthority returns the authority of a channel to target. A parameter of the target takes
// precedence over the program's option, which takes precedence over the first mechanism's
// authority. If the target is invalid, the result doesn't matter, because no channel is created.
func (r *reader) OverrideAuthority(target resolver.Target) string {
	t, mechanisms, err := r.readChannelTarget(Target{Target: target, Channel: target})
	switch {
	case err != nil:
		return r.scheme
	case t.options.Authority != "":
		return xnet.EncodeAuthority(t.options.Authority)
	case mechanisms[0].Authority != "":
		return mechanisms[0].Authority
	}
	return xnet.AuthorityOfEndpoint(t.Endpoint())
}

// Check returns an error if the target is invalid. Some errors only show up once a channel makes
// calls: those in the fields of the service config, and those that only a server can detect.
func (r *reader) Check(target resolver.Target, read bool) error {
	_, mechanisms, err := r.readChannelTarget(Target{Target: target, Channel: target})
	if err == nil {
		err = lbconfig.CheckServiceConfig(r.program.ServiceConfig)
	}
	for _, p := range mechanisms {
		if err == nil {
			err = p.Source.Check(read)
		}
	}
	return r.Prefixed(err, target)
}

// Read returns the mechanisms of a channel's target, the options that apply to it, and notes about
// options that have no effect. If the user has set an authority, it's already applied to the
// mechanisms.
func (r *reader) Read(target Target) (mechanisms []Mechanism, given options.ChannelOptions, notes []string, err error) {
	t, mechanisms, err := r.readChannelTarget(target)
	if err != nil {
		return nil, options.ChannelOptions{}, nil, err
	}
	mechanisms = slices.Clone(mechanisms)
	for i := range mechanisms {
		p := &mechanisms[i]
		if !p.authorityFromOption && t.options.Authority != "" {
			p.Authority = ""
		}
		p.TrustNames = p.TrustNames && !p.authorityFromOption && t.options.Authority == ""
	}
	return mechanisms, t.options, t.notes, nil
}

// readChannelTarget parses the target of a channel. For a nested target, use read instead.
func (r *reader) readChannelTarget(t Target) (*Target, []Mechanism, error) {
	t.options.Program, t.scope = r.program, options.Channel
	return r.read(t)
}

// read parses the target in t. The caller must already have set the options and the scope of t.
func (r *reader) read(t Target) (*Target, []Mechanism, error) {
	if err := t.readQuery(); err != nil {
		return nil, nil, err
	}
	mechanisms, err := r.parse(&t)
	err = cmp.Or(t.err, err)
	if err == nil {
		err = t.checkQuery()
	}
	if err == nil {
		err = checkMechanisms(mechanisms, true)
	}
	return &t, mechanisms, err
}

// Prefixed adds the scheme to err as a prefix and removes the target's secrets. It doesn't wrap
// err, because gRPC would fail wait-for-ready calls if there were a status in it.
func (r *reader) Prefixed(err error, target resolver.Target) error {
	if err == nil {
		return nil
	}
	return errors.New(r.scheme + ": " + printable.HideIn(err.Error(), target.URL))
}
