package join

import (
	"crypto/sha256"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"reflect"
	"sync"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	// We import this to register the policies that generated configurations use.
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
	_ "github.com/understudy-lb/understudy/internal/lb/leaf"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/text/printable"
	_ "github.com/understudy-lb/understudy/policy/drop"
	_ "github.com/understudy-lb/understudy/policy/outlierdetection"
	_ "github.com/understudy-lb/understudy/policy/pickfirst"
	_ "github.com/understudy-lb/understudy/policy/priority"
	_ "github.com/understudy-lb/understudy/policy/weightedroundrobin"
	_ "github.com/understudy-lb/understudy/policy/weightedtarget"
)

func init() {
	options.Make = func(scheme string, parse any, given options.Program) options.Builder {
		b := &builder{reader: options.NewReader(scheme, parse, given).(reader)}
		if b.identity = b; given.Registered != nil && len(given.Sources) == 0 {
			b.identity = [2]any{given.Registered, given.Authority}
		}
		return b
	}
}

// Package discovery implements this to parse the targets of a scheme, and gives it to us through
// options.NewReader.
type reader interface {
	Scheme() string
	resolver.AuthorityOverrider
	Reader() any // the reader, which also parses targets that are nested in other targets
	Check(target resolver.Target, read bool) error
	// Read returns the discovery mechanisms of a target, the options that apply to the channel, and
	// notes about options without effect. The Authority and TrustNames of each mechanism already
	// include the options.
	Read(discovery.Target) (mechanisms []discovery.Mechanism, given options.ChannelOptions, notes []string, err error)
	Prefixed(error, resolver.Target) error
}

type builder struct {
	reader
	// identity is equal for two builders that find the same endpoints for each target. If a program
	// sets options of sources, it is the builder itself: such options may be functions or
	// credentials, which we cannot compare.
	identity    any
	loggedNotes sync.Map
}

// Build implements resolver.Builder. It fails if the target, an option or the service config is
// invalid, or if the channel disables service configs.
func (b *builder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if opts.DisableServiceConfig {
		return nil, b.Prefixed(errors.New("the load-balancing policy comes with the endpoints, in the service config, which this channel disables (grpc.WithDisableServiceConfig, or the target is an entry of another)"), target)
	}
	conn := new(conn)
	conn.open(cc)
	config, given, err := b.configOf(discovery.Target{Target: target, Channel: target, ClientConn: conn, BuildOptions: opts}, credsCarryName(opts))
	if err != nil {
		return nil, err
	}
	given.Here = newClientLocation(given.Settings, config.Mechanisms, b.note)
	given.ChannelSeed = seedOf(opts)
	config.OnClose, config.ServiceConfig, config.Settings = conn.close, given.ServiceConfig, topology.Settings(given.Settings)
	config.InUse, _ = given.InUse.(*stateattr.InUseReporter)
	config.Recorder, config.Logger = opts.MetricsRecorder, given.Logger
	channel, err := Start(cc, config)
	if err != nil {
		return nil, b.Prefixed(err, target)
	}
	return channel, nil
}

func (b *builder) configOf(target discovery.Target, credsHaveName bool) (*Config, options.ChannelOptions, error) {
	mechanisms, given, notes, err := b.Read(target)
	for _, text := range notes {
		b.note(text)
	}
	if err != nil {
		return nil, given, b.Prefixed(err, target.Target)
	}
	redacted := printable.HideTarget(target.URL)
	config := &Config{
		Scheme:   b.Scheme(),
		Target:   redacted.String(),
		Hide:     func(text string) string { return printable.HideIn(text, target.URL) },
		Patience: given.FailoverTimeout,
		Label:    resolver.Target{URL: redacted}.String(),
	}
	key := sha256.Sum256([]byte(target.URL.String()))
	for _, p := range mechanisms {
		m := Mechanism{Mechanism: p, Key: storeKey{[2]any{b.identity, key}, p.Name}, TrustNames: p.TrustNames && !credsHaveName, entry: p.Name}
		m.OutlierDetection = "" // has no effect outside of lists (Receiver.Mechanisms)
		if p.Name != "" && !credsHaveName {
			m.ServerName = p.Authority
		}
		config.Mechanisms = append(config.Mechanisms, m)
	}
	return config, given, nil
}

func (b *builder) note(text string) {
	if _, isLogged := b.loggedNotes.LoadOrStore(text, true); !isLogged {
		logger.Warning(b.Scheme() + ": " + text)
	}
}

// We store the last good answer of a mechanism under this key. Its parent is the key of the
// mechanism whose source sent the list with the mechanism, or else the identity of the builder and
// a hash of the target, so channels with the same options and the same target share answers. The
// hash covers the passwords and tokens in the target: the endpoints may depend on them.
type storeKey struct {
	parent    any
	mechanism string
}

// If the channel's credentials contain a server name, addresses must have none: gRPC would use it
// for the handshake instead.
func credsCarryName(opts resolver.BuildOptions) bool {
	creds := opts.DialCreds
	if creds == nil && opts.CredsBundle != nil {
		creds = opts.CredsBundle.TransportCredentials()
	}
	return creds != nil && creds.Info().ServerName != ""
}

var processSeed = maphash.MakeSeed()

// The seed differs between channels, but must stay the same when a channel leaves idle mode and
// gRPC builds a new resolver. The pointer to the channel's metrics recorder does both.
func seedOf(opts resolver.BuildOptions) uint64 {
	v := reflect.ValueOf(opts.MetricsRecorder)
	if v.Kind() != reflect.Pointer || v.Type().Elem().Size() == 0 { // pointers to zero-size values may be equal
		return rand.Uint64()
	}
	return maphash.Comparable(processSeed, opts.MetricsRecorder)
}
