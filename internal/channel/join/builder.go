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
	// The blank imports register the policies that we put into generated configurations.
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
	options.Make = func(scheme string, parse any, program options.Program) options.Builder {
		b := &builder{reader: options.NewReader(scheme, parse, program).(reader)}
		if b.identity = b; program.Registered != nil && len(program.Sources) == 0 {
			b.identity = [2]any{program.Registered, program.Authority}
		}
		return b
	}
}

// reader parses the targets of a scheme. Package discovery implements it, and we get it through
// options.NewReader.
type reader interface {
	Scheme() string
	resolver.AuthorityOverrider
	Reader() any // also used for targets that are nested in other targets
	Check(target resolver.Target, read bool) error
	// Read returns a target's discovery mechanisms, the options for the channel, and notes about
	// options that have no effect. The options are already applied to the Authority and TrustNames
	// of each mechanism.
	Read(discovery.Target) (mechanisms []discovery.Mechanism, channelOptions options.ChannelOptions, notes []string, err error)
	Prefixed(error, resolver.Target) error
}

type builder struct {
	reader
	// identity is equal for two builders that find the same endpoints for every target. If the
	// program sets any source options, we use the builder itself, since options can be functions or
	// credentials and we can't compare those.
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
	config, channelOptions, err := b.configOf(discovery.Target{Target: target, Channel: target, ClientConn: conn, BuildOptions: opts}, credsCarryName(opts))
	if err != nil {
		return nil, err
	}
	channelOptions.Here = newClientLocation(channelOptions.Settings, config.Entries, b.note)
	channelOptions.ChannelSeed = seedOf(opts)
	config.OnClose, config.ServiceConfig, config.Settings = conn.close, channelOptions.ServiceConfig, topology.Settings(channelOptions.Settings)
	config.InUse, _ = channelOptions.InUse.(*stateattr.InUseReporter)
	config.Recorder, config.Logger = opts.MetricsRecorder, channelOptions.Logger
	channel, err := Start(cc, config)
	if err != nil {
		return nil, b.Prefixed(err, target)
	}
	return channel, nil
}

func (b *builder) configOf(target discovery.Target, credsHaveName bool) (*Config, options.ChannelOptions, error) {
	mechanisms, channelOptions, notes, err := b.Read(target)
	for _, text := range notes {
		b.note(text)
	}
	if err != nil {
		return nil, channelOptions, b.Prefixed(err, target.Target)
	}
	redacted := printable.HideTarget(target.URL)
	config := &Config{
		Scheme:   b.Scheme(),
		Target:   redacted.String(),
		Hide:     func(text string) string { return printable.HideIn(text, target.URL) },
		Patience: channelOptions.FailoverTimeout,
		Label:    resolver.Target{URL: redacted}.String(),
	}
	key := sha256.Sum256([]byte(target.URL.String()))
	for _, m := range mechanisms {
		e := Entry{Mechanism: m, Key: storeKey{[2]any{b.identity, key}, m.Name}}
		if e.TrustNames = m.TrustNames && !credsHaveName; m.Name != "" && !credsHaveName {
			e.ServerName = m.Authority
		}
		config.Entries = append(config.Entries, e)
	}
	return config, channelOptions, nil
}

func (b *builder) note(text string) {
	if _, isLogged := b.loggedNotes.LoadOrStore(text, true); !isLogged {
		logger.Warning(b.Scheme() + ": " + text)
	}
}

// storeKey is the key for a mechanism's last good answer. For a mechanism from a list, parent is
// the key of the mechanism whose source sent the list. Otherwise, it's the builder's identity and a
// hash of the target, so channels with the same target and options share answers. The hash includes
// passwords and tokens in the target because the endpoints may depend on them.
type storeKey struct {
	parent    any
	mechanism string
}

// If the credentials already carry a server name, we must not set one on addresses, or else gRPC
// would use the address's name for the handshake.
func credsCarryName(opts resolver.BuildOptions) bool {
	creds := opts.DialCreds
	if creds == nil && opts.CredsBundle != nil {
		creds = opts.CredsBundle.TransportCredentials()
	}
	return creds != nil && creds.Info().ServerName != ""
}

var processSeed = maphash.MakeSeed()

// Each channel needs its own seed, but the seed has to survive idle mode, when gRPC builds a new
// resolver for the same channel. The pointer to the channel's metrics recorder gives us both.
func seedOf(opts resolver.BuildOptions) uint64 {
	v := reflect.ValueOf(opts.MetricsRecorder)
	if v.Kind() != reflect.Pointer || v.Type().Elem().Size() == 0 { // pointers to zero-size values may be equal
		return rand.Uint64()
	}
	return maphash.Comparable(processSeed, opts.MetricsRecorder)
}
