package understudy

import (
	"log/slog"
	"time"

	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy/discovery"
)

// Options are the options of one channel, for NewClient. The zero value is gRFC A56 and
// gRPC's own defaults, nothing more; Recommended returns what this project stands behind. A
// parameter of the target overrides the field of the same name: docs/options.md lists them.
// Where one conflicts with another field, it switches that off, and the log says so once.
// A value may be used for several channels at once.
type Options struct {
	// FailoverTimeout is how long a priority may take to connect before the next one is used
	// (gRFC A56). It is more than 0; 0 stands for the default, 10 s.
	FailoverTimeout time.Duration
	// FailbackDelay is how long a priority must have been READY again before its calls come
	// back. From 0 to 24 h; the default is 0: at once (gRFC A56). Source: ours.
	FailbackDelay time.Duration
	// FailbackJitter is a window: each client adds a random part of it to each failback delay,
	// so that a fleet comes back over the whole of it. From 0 to 24 h; the default is 0: none.
	// Source: ours.
	FailbackJitter time.Duration
	// MaxFailbackDelay is what FailbackDelay doubles to while a priority keeps failing. 0, or
	// from FailbackDelay to 24 h; the default is 0: the delay does not grow. Source: ours.
	MaxFailbackDelay time.Duration
	// WarmStandby is how many of the priorities below the one in use are connected before they
	// are needed; of one with more than 20 endpoints 20 are. From 0 to 128; the default is 0: none (gRFC A56). Source: ours.
	WarmStandby int
	// FastFailover sends the calls of a priority that has lost its connections to a lower one
	// that is READY while it connects again. It counts for priorities that can hold two
	// connections. true or false; the default is false: calls wait for it, at most for
	// FailoverTimeout (gRFC A56). Source: ours.
	FastFailover bool
	// SlowStart is how long after connecting an endpoint's share of the calls grows. 0 and
	// more; the default is 0: it has its whole share at once. It is not to be had with PickFirst.
	// Source: Envoy's slow start.
	SlowStart time.Duration
	// PickFirst sends the calls of each locality to the first endpoint that connects, in the
	// order given. true or false; the default is false: they go to all, by weight. Source:
	// gRFC A62.
	PickFirst bool
	// MinReady is the part of a priority's weight that is to be READY: below it the calls go
	// to the next priority that has as much. From 0 to 1; the default is 0: a priority is used
	// as long as anything of it is READY (gRFC A56). Source: ours.
	MinReady float64
	// MinReadyRecovery is the part with which the calls come back. 0, or from MinReady to 1;
	// the default is 0: as MinReady. Source: ours.
	MinReadyRecovery float64
	// OutlierDetection takes endpoints whose calls fail out of use for a while, and priorities
	// whose endpoints all do. AsClusterSays, On or Off; the default is AsClusterSays: none
	// where they are no Envoy clusters. On is not to be had with PickFirst. The calls need
	// deadlines: one without never shows that a server hangs. Source: gRFC A50, and ours.
	OutlierDetection OutlierDetection

	// Prefer sends the calls of each priority to its near endpoints first: "zone" to those of
	// the client's zone, then of its region, then to the rest; "node" to those of its node before
	// these; "hints" to those that the source names for clients of its node or zone. "balance"
	// keeps calls in the client's zone as far as all endpoints have the same load then; "none" sends
	// them to all alike. The default is "": what the source says, which is "hints" for kubernetes, and
	// "none" for others. With the others a zone with few endpoints and many callers is
	// overloaded: see docs/near.md. Source: ours, and Envoy's zone-aware routing.
	Prefer string
	// Zone, Region and Node are where the client runs, in the words of the source of the
	// endpoints. The default is what UNDERSTUDY_ZONE, UNDERSTUDY_REGION and UNDERSTUDY_NODE say,
	// and with an eds target then the locality of the node in the bootstrap. Nothing is guessed:
	// Prefer has no effect without a place, and the log says so once. Source: ours.
	Zone, Region, Node string
	// ZoneMinEndpoints is how many endpoints that can take calls make a near group of their own: a
	// group of fewer is merged with the next. 1 and more; 0 stands for the default, 1. Source: ours.
	ZoneMinEndpoints int
	// ZoneCallers is how many callers each zone has, for "balance": "a:2,b:1", each zone once, with a
	// number from 0 to a billion. The default is "": as many in each zone that has endpoints. A zone
	// that it leaves out has none; one that the source does not name has callers and no endpoints.
	// Source: ours.
	ZoneCallers string

	// Subset is how many endpoints of each locality this client connects: of 5,000 it would
	// otherwise connect all. Those are drawn whatever their weights, which act in the picks. 1 and
	// more; 0 stands for the default, all. It is not to be had with PickFirst. Source: gRFC A68.
	Subset int
	// SubsetSeed chooses the endpoints of the subset: clients with the same one have the same. 1 and
	// more; 0 stands for the default, one drawn for each channel, which it keeps. Source: gRFC A68.
	SubsetSeed int

	// Refresh is the time from an answer to the next look-up, for sources that look up names,
	// give or take a tenth. Never, or 1 s and more; the default is 0: the source's own, none
	// for DNS and 30 s for SRV. Other sources are told what is new. Source: ours.
	Refresh time.Duration
	// RemoveAfter is how many answers in a row must lack an address before its connections
	// are closed, where names are looked up again by an interval. 1 and more; 0 stands for the
	// default, 2. Source: ours.
	RemoveAfter int
	// Sources are options of single sources, such as eds.WithNode. One of a source that
	// no part of the target is of has no effect, and the log says so once. The default is none.
	// Source: those sources.
	Sources []discovery.SourceOption
	// Authority is the :authority of the calls, and the name that certificates are verified
	// against, for the endpoints of all parts. A name, with a port if need be; the default is
	// "": each part's own. grpc.WithAuthority overrides it. Source: gRPC.
	Authority string

	// ServiceConfig is the channel's service config: methodConfig, and what else is not load
	// balancing. A JSON object; the default is "": none. Use it in place of
	// grpc.WithDefaultServiceConfig, which gRPC drops without a word on such a channel.
	// Source: gRPC.
	ServiceConfig string
	// RetryMethods are the methods that may run twice: a call that ends with UNAVAILABLE is
	// tried up to 4 times, 50 ms to 1 s apart. Each is "/package.Service/Method", as generated
	// code has it in Service_Method_FullMethodName, or "/package.Service/" for the whole
	// service. The default is none: only calls that no server has seen are tried again.
	// Source: gRFC A6.
	RetryMethods []string
	// RetryThrottling ends retries where failures mount up. The default is none. Source: gRFC A6.
	RetryThrottling RetryThrottling
	// HealthCheck asks each endpoint for its health, so that one that says NOT_SERVING gets
	// no calls. One that does not serve grpc.health.v1.Health counts as healthy. true or
	// false; the default is false. Source: gRPC's health checking.
	HealthCheck bool
	// HealthService is the service whose health that is. The default is "": the whole server.
	// Source: gRPC's health checking.
	HealthService string

	// Keepalive are pings that notice a server that hangs or is cut off. Time is 10 s and
	// more; the default is the zero value: none, so that such a server stays in use for many
	// minutes. The servers must allow it, and first: see ServerKeepalive. Where one refuses, the
	// log says so. Source: gRPC (gRFC A8).
	Keepalive keepalive.ClientParameters
	// MaxConnectBackoff is the longest time between two attempts to connect to an endpoint.
	// Where it is set, and nothing has been READY for 10 s, the first endpoint that connects has
	// the others tried at once, at most once a minute. 1 s and more; 0 stands for the default,
	// 120 s and none of that. Source: gRPC's connection backoff, and ours.
	MaxConnectBackoff time.Duration

	// Logger takes the channel's failovers, and that servers refuse its pings, in addition to
	// gRPC's log and whatever the level of that, at slog.LevelWarn; docs/log.md says what the
	// records hold. Its handler is called with failovers by one goroutine at a time, in order,
	// and may take its time. The default is nil: none. Source: ours.
	Logger *slog.Logger
	// PriorityChanged is called with the priority in use, when the channel has chosen its first,
	// and with each change of it. It is called by one goroutine at a time, in order, and never
	// where a call waits for it, so it may take its time and make calls of its own. After Close,
	// and while the channel is idle, it is not called. The default is nil: no function.
	// Source: ours.
	PriorityChanged func(PriorityInUse)
}

// OutlierDetection says whether the endpoints whose calls fail are taken out of use.
type OutlierDetection int

// The values of OutlierDetection.
const (
	// AsClusterSays does as the endpoints' Envoy clusters say.
	AsClusterSays OutlierDetection = iota
	// On does it with settings for priorities of few endpoints, whatever clusters say.
	On
	// Off does none, whatever clusters say.
	Off
)

// Never is a Refresh that does not come: names are looked up again only when a connection
// fails.
const Never time.Duration = -1

// RetryThrottling are the tokens of retries (gRFC A6): a call that fails takes one, a call
// that succeeds gives TokenRatio, and there are retries while more than half of MaxTokens
// are left. The zero value is no throttling.
type RetryThrottling struct {
	// MaxTokens is more than 0, and at most 1000.
	MaxTokens float64
	// TokenRatio is more than 0.
	TokenRatio float64
}

// Recommended returns what this project stands behind: README, demo, tests and figures use
// it. It needs servers that allow its keepalive: see ServerKeepalive. It retries no method:
// set RetryMethods to those that may run twice.
func Recommended() Options {
	return Options{
		FailbackDelay:     10 * time.Second,
		FailbackJitter:    20 * time.Second,
		MaxFailbackDelay:  30 * time.Second,
		WarmStandby:       1,
		FastFailover:      true,
		OutlierDetection:  On,
		Refresh:           30 * time.Second,
		RetryThrottling:   RetryThrottling{MaxTokens: 1000, TokenRatio: 0.1},
		HealthCheck:       true,
		Keepalive:         keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true},
		MaxConnectBackoff: 10 * time.Second,
	}
}
