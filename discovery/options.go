package discovery

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/topology"
)

// Option is an option of a channel. Those of this package hold for all sources; a
// source's package may have others. A mistake in an option fails the channel's calls
// with an error that says so. Options may be used for several channels at once.
type Option func(*options)

type options struct {
	serviceConfig string
	authority     string
	settings      topology.Settings
	refresh       refreshOptions
	logger        *slog.Logger
	own           map[reflect.Type][]any // the sources' own, as given: func(*T) by T
}

// WithServiceConfig gives the service config, in JSON, that the channel gets with the
// endpoints: methodConfig, retryThrottling, healthCheckConfig. Use it in place of
// grpc.WithDefaultServiceConfig, which has no effect on such a channel: gRPC drops a
// default service config when the resolver sends one. Load balancing is the resolver's,
// so loadBalancingConfig and loadBalancingPolicy are errors. The default is none.
func WithServiceConfig(json string) Option {
	return func(o *options) { o.serviceConfig = json }
}

// WithAuthority gives the channel's authority: the :authority of its calls, and the
// name that certificates are verified against. It holds for the endpoints of all parts
// of a target. grpc.WithAuthority goes before it. The default is each part's own.
func WithAuthority(name string) Option {
	return func(o *options) { o.authority = name }
}

// WithLogger gives a logger that is told of the channel's failovers, in addition to
// gRPC's log and whatever the level of that: of each change of the priority in use, and
// when no priority is left that can take calls, at slog.LevelWarn. What the records say
// is in docs/log.md. Its handler is called by one goroutine at a time, in order, and may
// take its time.
func WithLogger(logger *slog.Logger) Option {
	return func(o *options) { o.logger = logger }
}

// WithFailoverTimeout sets how long a priority may take to connect before the next one
// is used (gRFC A56). It is more than 0; the default is 10 s.
func WithFailoverTimeout(d time.Duration) Option {
	return func(o *options) { o.settings.FailoverTimeout = positive(d) }
}

// WithFailbackDelay sets how long a priority must have been READY again before calls go
// back to it. It is from 0 to 24 h; the default is 0: at once.
func WithFailbackDelay(d time.Duration) Option {
	return func(o *options) { o.settings.FailbackDelay = d }
}

// WithSlowStart sets how long after connecting an endpoint's share of the calls grows
// until it is the one of its weight. It is not negative; the default is 0: the endpoint
// has its full share at once.
func WithSlowStart(d time.Duration) Option {
	return func(o *options) { o.settings.SlowStart = d }
}

// WithPickFirst sends the calls of each locality to one endpoint, the first that
// connects in the order given (gRFC A62). By default they go to all, by their weights.
func WithPickFirst() Option {
	return func(o *options) { o.settings.PickFirst = true }
}

// WithMinReady sets the part of a priority's weight that is to be READY, from 0 to 1:
// below that the calls go to the next priority that has as much, once it is connected. They
// come back when recovery is READY, which is minReady or more; 0 stands for minReady. An
// endpoint that is connecting, for the first time or again, counts once it is READY or has
// failed. The default is 0: a priority is used as long as anything of it is READY.
func WithMinReady(minReady, recovery float64) Option {
	return func(o *options) { o.settings.MinReady, o.settings.MinReadyRecovery = minReady, recovery }
}

// WithWarmStandby connects the next n priorities before they are needed, from 0 to 128:
// a failover then waits for no connection. It costs connections that carry no calls, at
// each client. The default is 0: none.
func WithWarmStandby(n int) Option {
	return func(o *options) { o.settings.WarmStandby = n }
}

// WithFastFailover sends the calls of a priority that has lost its connections to a lower
// one that is READY while it connects again, see WithWarmStandby. It counts for priorities
// that can hold two connections: of two endpoints or, with WithPickFirst, two localities.
// By default calls wait for it, at most for the failover timeout.
func WithFastFailover() Option {
	return func(o *options) { o.settings.FastFailover = true }
}

// WithFailbackJitter spreads the way back of many clients over a window: each waits for a
// random part of it beyond the failback delay. It is from 0 to 24 h; the default is 0.
func WithFailbackJitter(window time.Duration) Option {
	return func(o *options) { o.settings.FailbackJitter = window }
}

// WithMaxFailbackDelay lets the failback delay double each time that a priority fails
// again soon after it came back, or before it did, up to a bound of 24 h at most. Once it
// has been in use for as long as the bound, the delay is what it was. The default is 0:
// the delay does not grow.
func WithMaxFailbackDelay(bound time.Duration) Option {
	return func(o *options) { o.settings.MaxFailbackDelay = bound }
}

// WithOutlierDetection takes endpoints whose calls fail out of use for a while, and
// priorities whose endpoints all do. So calls that end with UNAVAILABLE or
// DEADLINE_EXCEEDED, or with INTERNAL from the server, fail over as lost connections do
// (gRFC A50, with settings for few endpoints; package outlierdetection). The calls need
// deadlines: one without never shows that a server hangs. By default it is done as the
// endpoints' clusters say, so not at all where they are no Envoy clusters.
func WithOutlierDetection() Option {
	return func(o *options) { o.settings.OutlierDetection = true }
}

// positive returns d, or for 0 a value that check refuses: 0 in the settings means the
// default.
func positive(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// OwnOption returns an option for a source of your own. set changes a T, a type of the
// source's package; OwnOptions reads it.
func OwnOption[T any](set func(*T)) Option {
	return func(o *options) {
		own := maps.Clone(o.own)
		if own == nil {
			own = make(map[reflect.Type][]any)
		}
		key := reflect.TypeFor[T]()
		own[key] = append(slices.Clone(own[key]), set)
		o.own = own
	}
}

// OwnOptions returns defaults, changed by each option that OwnOption made for T, in the
// order in which they were given.
func OwnOptions[T any](t *Target, defaults T) T {
	for _, set := range t.options.own[reflect.TypeFor[T]()] {
		set.(func(*T))(&defaults)
	}
	return defaults
}

// parameters are the parameters that every target may have, and what each does. A
// parameter goes before the option of the same name.
var parameters = map[string]func(*options, string) error{
	"authority": func(o *options, v string) error { o.authority = v; return nil },
	"failoverTimeout": func(o *options, v string) (err error) {
		o.settings.FailoverTimeout, err = parseDuration(v)
		o.settings.FailoverTimeout = positive(o.settings.FailoverTimeout)
		return err
	},
	"failbackDelay": func(o *options, v string) (err error) {
		o.settings.FailbackDelay, err = parseDuration(v)
		return err
	},
	"slowStart": func(o *options, v string) (err error) {
		o.settings.SlowStart, err = parseDuration(v)
		return err
	},
	"pickFirst": func(o *options, v string) (err error) {
		o.settings.PickFirst, err = parseBool(v)
		return err
	},
	"minReady": func(o *options, v string) (err error) {
		o.settings.MinReady, err = parseFraction(v)
		return err
	},
	"minReadyRecovery": func(o *options, v string) (err error) {
		o.settings.MinReadyRecovery, err = parseFraction(v)
		return err
	},
	"warmStandby": func(o *options, v string) (err error) {
		o.settings.WarmStandby, err = parseCount(v)
		return err
	},
	"fastFailover": func(o *options, v string) (err error) {
		o.settings.FastFailover, err = parseBool(v)
		return err
	},
	"failbackJitter": func(o *options, v string) (err error) {
		o.settings.FailbackJitter, err = parseDuration(v)
		return err
	},
	"maxFailbackDelay": func(o *options, v string) (err error) {
		o.settings.MaxFailbackDelay, err = parseDuration(v)
		return err
	},
	"outlierDetection": func(o *options, v string) (err error) {
		o.settings.OutlierDetection, err = parseBool(v)
		o.settings.NoOutlierDetection = !o.settings.OutlierDetection
		return err
	},
}

// ParseSettings returns what the parameters of a target say of the policies, such as
// minReady=0.6. It is for tools that have no channel. An unknown name, a bad value and one
// that is given twice are errors, as in a target.
func ParseSettings(given url.Values) (topology.Settings, error) {
	known := maps.Clone(parameters)
	delete(known, "authority") // it is no policy's
	var o options
	for _, name := range slices.Sorted(maps.Keys(given)) {
		set := known[name]
		if set == nil {
			return topology.Settings{}, fmt.Errorf("unknown parameter %q, want one of %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if len(given[name]) != 1 || given[name][0] == "" {
			return topology.Settings{}, fmt.Errorf("not one %s given, but none or several", name)
		}
		if err := set(&o, given.Get(name)); err != nil {
			return topology.Settings{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return o.settings, o.check()
}

func parseFraction(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%q given, want a number from 0 to 1, such as 0.6", text)
	}
	return f, nil
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q given, want a whole number such as 1", text)
	}
	return n, nil
}

func parseBool(text string) (bool, error) {
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%q given, want true or false", text)
	}
	return v, nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q given, want a duration such as 10s", text)
	}
	return d, nil
}

// check says what is wrong with the settings, wherever they come from.
func (o *options) check() error {
	for name, d := range map[string]time.Duration{
		"failoverTimeout": o.settings.FailoverTimeout, "slowStart": o.settings.SlowStart,
	} {
		if d < 0 {
			if name == "failoverTimeout" {
				return fmt.Errorf("%s: a duration that is not positive given, want one such as 10s", name)
			}
			return fmt.Errorf("%s: %v given, want a duration such as 10s, or 0s for none", name, d)
		}
	}
	if err := o.settings.Check(); err != nil {
		return err
	}
	if o.settings.OutlierDetection && o.settings.PickFirst {
		return errors.New("outlierDetection: true given together with pickFirst, want one of them: one pick_first over several endpoints does not notice that one of them is ejected")
	}
	return nil
}
