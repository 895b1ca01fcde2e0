package understudy

import (
	"log/slog"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// Options configures a channel. Fields that aren't set have the defaults of gRFC A56 and gRPC, and
// Recommended returns the values we recommend. Parameters in the target override the fields of the
// same name (see docs/options.md for the list). If a parameter can't be combined with one of the
// other fields, that field is ignored and a message is logged once. The same Options may be used
// for several channels concurrently.
type Options struct {
	// FailoverTimeout is how long a priority may take to connect before we use the next one. It
	// must not be negative, and the default is 10 s. Source: gRFC A56.
	FailoverTimeout time.Duration
	// WarmStandby is the number of priorities below the one in use that we connect to in advance.
	// If such a priority has more than 20 endpoints, we only connect to 20 of them, or to one per
	// locality if there are more than 20 localities. The maximum is 128. The default is 0, which
	// means that we don't connect in advance (gRFC A56). Source: Understudy.
	WarmStandby int
	// Overflow gives each priority only the share of the calls that it can handle. If a priority is
	// full, slow, silent or failing, some or all of its calls go to the next one that's READY.
	// Calls that no priority can handle fail right away with RESOURCE_EXHAUSTED, "shed: every
	// priority is full". When a priority recovers, it gets a few probes at first and then a growing
	// share (see Ramp). Standbys are connected from the start, and if at least one priority is
	// READY, calls don't go to any that aren't. Just like OutlierDetection, this needs calls to
	// have deadlines. By default, it's off, and all calls go to the highest priority that's READY
	// or still has time to connect (gRFC A56). Source: Understudy.
	Overflow bool
	// Ramp is how long it takes a recovering priority to get back from 1/16 of the calls to all of
	// them. The share keeps doubling as long as the priority can handle it. Servers with cold
	// caches may need minutes. Ramp can be between 1 s and 1 h and only has an effect with
	// Overflow. The default is 8 s. Source: Understudy, and TCP's slow start.
	Ramp time.Duration
	// SlowStart is how long it takes a new endpoint to reach its full share of the calls. By
	// default, it gets its full share right away. This only works with weighted_round_robin.
	// Source: Envoy's slow start.
	SlowStart time.Duration
	// EndpointPolicy is the policy that picks an endpoint once priorities, ejection and localities
	// have been dealt with. It's "weighted_round_robin" (all endpoints get calls, by weight; gRFC
	// A34), "pick_first" (the first endpoint in each locality that connects; gRFC A62), or the name
	// of another registered policy, with or without its configuration, e.g.
	// `least_request_experimental{"choiceCount": 2}`. Note that weighted_round_robin with a
	// configuration is grpc-go's policy, which uses load reports (gRFC A58). The default is "",
	// which means weighted_round_robin. See docs/howto/endpoint-policy.md. Source: gRPC's policies,
	// and Understudy.
	EndpointPolicy string
	// PerPriority gives EndpointPolicy all endpoints of a priority in one list. Each endpoint's
	// weight is multiplied by that of its locality. By default, there's one policy for each
	// locality, except with ring_hash, which always gets one list. Source: gRFC A42.
	PerPriority bool
	// OutlierDetection temporarily ejects endpoints whose calls fail, and avoids priorities whose
	// endpoints are all ejected. The default is AsClusterSays, which doesn't eject anything unless
	// the target has Envoy clusters. On can't be combined with pick_first. Make sure that calls
	// have deadlines: without one, a call doesn't fail if the server hangs. Source: gRFC A50, and
	// Understudy.
	OutlierDetection OutlierDetection

	// Prefer sends the calls of each priority to endpoints near the client first. "zone" prefers
	// the client's zone, then its region, then everything else. "hints" prefers the endpoints that
	// the source suggests for the client's node or zone. "none" treats all endpoints alike. The
	// default, "", means "hints" for kubernetes targets and "none" for all others. Note that with
	// anything but "none", a zone with few endpoints and many callers can get overloaded if
	// Overflow is off, see docs/near.md. Source: Understudy.
	Prefer string
	// Zone, Region and Node are the client's location, using the names that the source of the
	// endpoints uses. The default is UNDERSTUDY_ZONE, UNDERSTUDY_REGION and UNDERSTUDY_NODE in the
	// environment. For eds targets, we then fall back to the locality of the node in the bootstrap.
	// If the location isn't known, Prefer has no effect and a message is logged once. Source:
	// Understudy.
	Zone, Region, Node string

	// Subset limits how many endpoints in each locality this client connects to. They are chosen
	// regardless of their weights, but the weights still apply to picks. It can't be combined with
	// pick_first. By default, the client connects to all endpoints. Source: gRFC A68.
	Subset int
	// SubsetSeed determines which endpoints are in the subset. Clients with the same seed choose
	// the same endpoints. It must not be negative. By default, each channel has a random seed.
	// Source: gRFC A68.
	SubsetSeed int

	// Refresh is how often names are looked up, give or take a random 10%. It's either Never or at
	// least 1 s. By default, names aren't looked up periodically for DNS, and every 30 s for SRV.
	// Sources that are notified of changes ignore this field. Source: Understudy.
	Refresh time.Duration
	// RemoveAfter is how many answers in a row have to be missing an address before we close its
	// connections, if names are looked up periodically. It must not be negative, and the default is
	// 2. Source: Understudy.
	RemoveAfter int
	// Sources are options for individual sources, e.g. eds.WithNode. If the target doesn't use a
	// source, its options have no effect and a message is logged once. By default, there are none.
	// Source: the packages of the sources.
	Sources []discovery.SourceOption
	// Authority is the :authority of calls, and the name we verify certificates against, for all
	// endpoints of the target. It's a name, optionally with a port. By default, each entry of a
	// failover target has its own. grpc.WithAuthority overrides it. Source: gRPC.
	Authority string

	// ServiceConfig is the channel's service config as a JSON object, e.g. for methodConfig. It
	// must not configure load balancing. By default, there is none. Don't use
	// grpc.WithDefaultServiceConfig: on these channels, gRPC drops any timeouts, retries and health
	// checks in that dial option without an error or a log line, and NewClient can't see them.
	// Source: gRPC.
	ServiceConfig string
	// RetryMethods lists the methods that are safe to retry. If a call to one of them fails with
	// UNAVAILABLE, it's attempted up to 4 times, with a backoff of 50 ms to 1 s. Each entry is
	// either "/package.Service/Method", which is also the value of Service_Method_FullMethodName in
	// generated code, or "/package.Service/" for the whole service. By default, gRPC only retries
	// calls that no server has processed. Source: gRFC A6.
	RetryMethods []string
	// RetryThrottling stops retries while many calls fail. By default, retries aren't throttled.
	// Source: gRFC A6.
	RetryThrottling RetryThrottling
	// HealthCheck enables client-side health checking, so endpoints that report NOT_SERVING don't
	// get calls. If an endpoint doesn't have grpc.health.v1.Health, we assume it's healthy. It's
	// off by default. Source: gRPC's health checking.
	HealthCheck bool
	// HealthService is the service name for health checks. By default, it's "", which means the
	// whole server. Source: gRPC's health checking.
	HealthService string

	// Keepalive configures pings, which detect servers that hang or can't be reached. Time must be
	// at least 10 s. By default, there are no pings, so such a server may stay in use for many
	// minutes. Make sure the servers accept the pings first, see ServerKeepalive. If a server
	// rejects them, a message is logged. Source: gRPC (gRFC A8).
	Keepalive keepalive.ClientParameters
	// MaxConnectBackoff is the longest backoff between attempts to connect to an endpoint. It must
	// be at least 1 s. If it's set, backoffs are even shorter while no priority is READY: at most 2
	// s or half a second per endpoint of the channel, whichever is more, but never over 10 s. The
	// default is 120 s at all times. Source: gRPC's connection backoff, and Understudy.
	MaxConnectBackoff time.Duration

	// Logger gets records at slog.LevelWarn for failovers and outages, when a source of endpoints
	// fails, and when a server rejects keepalive pings. This is in addition to gRPC's log. See
	// docs/log.md for the records. Failovers arrive in order, from one goroutine at a time, and the
	// handler may block. By default, there are no records. Source: Understudy.
	Logger *slog.Logger
	// PriorityChanged is called with the priority in use when the channel picks its first one, and
	// whenever it changes. Calls arrive in order, from one goroutine at a time. No RPC waits for
	// them, so the function may block and even make RPCs itself. It isn't called after Close or
	// while the channel is idle. By default, it's nil and nothing is called. Source: Understudy.
	PriorityChanged func(PriorityInUse)
}

// OutlierDetection controls whether endpoints whose calls fail are ejected.
type OutlierDetection int

// Values for OutlierDetection.
const (
	// AsClusterSays follows the configuration of the endpoints' Envoy clusters.
	AsClusterSays OutlierDetection = iota
	// On enables outlier detection with settings that work well for priorities with few endpoints.
	// The clusters' configuration is ignored.
	On
	// Off disables outlier detection, no matter what the clusters' configuration says.
	Off
)

// Never is a value for Refresh. Names are then only looked up again when a connection fails.
const Never time.Duration = -1

// RetryThrottling limits retries (gRFC A6). Every failed call takes one token, every successful
// call gives back TokenRatio tokens, and calls are only retried while more than half of MaxTokens
// are left. The zero value means no throttling.
type RetryThrottling struct {
	// MaxTokens is greater than 0 and at most 1000.
	MaxTokens float64
	// TokenRatio is greater than 0.
	TokenRatio float64
}

// Recommended returns the options we recommend. The README, the demo and the benchmarks all use
// them. Servers have to allow the keepalive pings, see ServerKeepalive. Recommended doesn't enable
// retries for any method, so set RetryMethods to the ones that are safe to retry.
func Recommended() Options {
	return Options{
		FailoverTimeout:   2 * time.Second,
		WarmStandby:       1,
		Overflow:          true,
		OutlierDetection:  On,
		Refresh:           30 * time.Second,
		RetryThrottling:   RetryThrottling{MaxTokens: 100, TokenRatio: 0.1},
		HealthCheck:       true,
		Keepalive:         keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true},
		MaxConnectBackoff: 10 * time.Second,
	}
}

// PriorityInUse describes the priority that a channel is sending its calls to. Use it in
// Options.PriorityChanged for alerts, readiness probes or feature switches.
type PriorityInUse struct {
	// Target is the target of the channel, without passwords and tokens.
	Target string
	// Index is the number of the priority; 0 is the highest. It's -1 if no priority can take calls
	// and calls fail. With Overflow, a priority that's connected stays in use even while others
	// take the calls it can't handle. For those, see the log's records of shares.
	Index int
	// Name is the name of the priority in the log, such as "p0 us-east/a, us-east/b", or "none".
	Name string
	// State is READY if calls are being sent, CONNECTING if calls wait for a connection, IDLE if
	// the next call will start a connection, and TRANSIENT_FAILURE if no priority can take calls.
	State connectivity.State
	// Since is when the priority came into use. It doesn't change when State does.
	Since time.Time
	// Why is the reason for the change, in the same words as in the log: why the previous priority
	// failed, or why no priority can take calls. It's empty for the initial highest priority.
	Why string
}

func (o Options) inUseReporter() *stateattr.InUseReporter {
	changed := o.PriorityChanged
	if changed == nil {
		return nil
	}
	return stateattr.NewInUseReporter(func(p stateattr.PriorityInUse) { changed(PriorityInUse(p)) })
}
