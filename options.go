package understudy

import (
	"log/slog"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// Options are the options of a channel, for NewClient. The zero value gives the defaults of gRFC
// A56 and of gRPC; Recommended returns the recommended values. A target parameter overrides the
// field of the same name; docs/options.md lists the parameters. If a parameter conflicts with
// another field, that field is ignored and a message is logged once. A value may be used for
// several channels concurrently.
type Options struct {
	// FailoverTimeout is how long a priority may take to connect before the next one is used. It
	// must not be negative; 0 means the default, 10 s. Source: gRFC A56.
	FailoverTimeout time.Duration
	// WarmStandby is how many of the priorities below the one in use are connected in advance. If a
	// priority has more than 20 endpoints, only 20 of them are connected, or one of each locality
	// if there are more localities than that. From 0 to 128; the default is 0: none (gRFC A56).
	// Source: Understudy.
	WarmStandby int
	// Overflow gives each priority the share of the calls that it can carry. If a priority is full,
	// slow, silent or failing, some or all of its calls go to the next one that is READY. Calls that
	// no priority can carry fail at once with RESOURCE_EXHAUSTED, "shed: every priority is full". A
	// priority that recovers gets probes, and then a share that grows: see Ramp. Standbys are connected
	// from the start, and only priorities that are READY take calls if there are any. Calls need
	// deadlines, as for OutlierDetection. The default is false: all calls go to the highest priority
	// that is READY or still has time to connect (gRFC A56). Source: Understudy.
	Overflow bool
	// Ramp is the time in which the share of a priority that recovers doubles from 1/16 to 1, if it
	// carries that. Servers with cold caches need minutes. It needs Overflow. From 1 s to 1 h; 0 means
	// the default, 8 s. Source: Understudy, and TCP's slow start.
	Ramp time.Duration
	// SlowStart is the time over which a new endpoint's share of the calls grows to its full value.
	// The default is 0: the endpoint gets its full share immediately. It can be combined only with
	// weighted_round_robin. Source: Envoy's slow start.
	SlowStart time.Duration
	// EndpointPolicy is the policy that picks an endpoint, below priorities, ejection and
	// localities: "weighted_round_robin" (all endpoints get calls, by weight; gRFC A34),
	// "pick_first" (the first endpoint of each locality that connects; gRFC A62), or the name of
	// another registered policy, with or without its configuration, such as
	// `least_request_experimental{"choiceCount": 2}`. weighted_round_robin with a configuration is
	// grpc-go's policy by load reports (gRFC A58). The default is "": weighted_round_robin. See
	// docs/howto/endpoint-policy.md. Source: gRPC's policies, and Understudy.
	EndpointPolicy string
	// PerPriority gives EndpointPolicy all endpoints of a priority in one list, with the products of
	// endpoint and locality weights. The default is false: each locality has a policy of its own,
	// except that ring_hash always gets one list. Source: gRFC A42.
	PerPriority bool
	// OutlierDetection temporarily ejects endpoints whose calls fail, and avoids priorities whose
	// endpoints are all ejected. The default is AsClusterSays, which ejects nothing for targets
	// without Envoy clusters. On and pick_first exclude each other. Calls need deadlines: a call
	// without a deadline does not fail if the server hangs. Source: gRFC A50, and Understudy.
	OutlierDetection OutlierDetection

	// Prefer sends the calls of each priority to endpoints near the client first. "zone" prefers
	// the client's zone, then its region, then the rest. "hints" prefers the endpoints that the
	// source suggests for the client's node or zone. "none" treats all endpoints alike. The default
	// is "": "hints" for kubernetes targets, "none" for others. With all values except "none", a
	// zone with few endpoints and many callers can be overloaded, if Overflow is off: see
	// docs/near.md. Source: Understudy.
	Prefer string
	// Zone, Region and Node are the client's location, as named by the source of the endpoints. The
	// default is UNDERSTUDY_ZONE, UNDERSTUDY_REGION and UNDERSTUDY_NODE from the environment and,
	// for eds targets, then the locality of the node in the bootstrap. Without a location, Prefer
	// has no effect and a message is logged once. Source: Understudy.
	Zone, Region, Node string

	// Subset is how many endpoints of each locality this client connects to. Endpoints are chosen
	// without regard to their weights; the weights then apply to picks. It cannot be combined with
	// pick_first. 1 or more; 0 means the default, all endpoints. Source: gRFC A68.
	Subset int
	// SubsetSeed determines the endpoints of the subset: clients with the same seed choose the same
	// endpoints. 1 or more; 0 means the default, a random seed for each channel. Source: gRFC A68.
	SubsetSeed int

	// Refresh is the interval between look-ups of names, varied randomly by up to a tenth. Never,
	// or 1 s or more; the default is 0: no periodic look-ups for DNS, 30 s for SRV. Sources that
	// are notified of changes ignore this field. Source: Understudy.
	Refresh time.Duration
	// RemoveAfter is how many consecutive answers must lack an address before its connections are
	// closed, for names that are looked up at an interval. 1 or more; 0 means the default, 2.
	// Source: Understudy.
	RemoveAfter int
	// Sources are options of individual sources, such as eds.WithNode. Options of a source that the
	// target does not use have no effect, and a message is logged once. The default is none.
	// Source: the packages of the sources.
	Sources []discovery.SourceOption
	// Authority is the :authority of the calls and the name that certificates are verified against,
	// for all endpoints of the target. It is a name, optionally with a port; the default is "":
	// each entry of a failover target has its own. grpc.WithAuthority overrides it. Source: gRPC.
	Authority string

	// ServiceConfig is the channel's service config without load balancing, such as methodConfig.
	// It is a JSON object; the default is "": none. It replaces grpc.WithDefaultServiceConfig: on
	// these channels, gRPC drops the timeouts, retries and health checks of that dial option without
	// an error or a log line, and NewClient cannot see it. Source: gRPC.
	ServiceConfig string
	// RetryMethods are the methods that are safe to retry: a call that fails with UNAVAILABLE is
	// attempted up to 4 times, with a backoff of 50 ms to 1 s. Each entry is
	// "/package.Service/Method", the value of Service_Method_FullMethodName in generated code, or
	// "/package.Service/" for the whole service. The default is none: gRPC retries only calls that
	// no server has processed. Source: gRFC A6.
	RetryMethods []string
	// RetryThrottling stops retries while many calls fail. The default is none. Source: gRFC A6.
	RetryThrottling RetryThrottling
	// HealthCheck enables client-side health checking: endpoints that report NOT_SERVING get no
	// calls. An endpoint without grpc.health.v1.Health counts as healthy. The default is false.
	// Source: gRPC's health checking.
	HealthCheck bool
	// HealthService is the service name for health checks. The default is "": the whole server.
	// Source: gRPC's health checking.
	HealthService string

	// Keepalive configures pings that detect servers that hang or cannot be reached. Time must be
	// at least 10 s. The default is the zero value: no pings, so that such a server may stay in use
	// for many minutes. Configure the servers to accept the pings first: see ServerKeepalive. If a
	// server rejects them, a message is logged. Source: gRPC (gRFC A8).
	Keepalive keepalive.ClientParameters
	// MaxConnectBackoff is the longest backoff between attempts to connect to an endpoint. If it is
	// set, backoffs are shorter while no priority is READY: at most 2 s, or half a second for each of
	// the channel's endpoints up to 10 s. 1 s or more; 0 means the default: 120 s at all times.
	// Source: gRPC's connection backoff, and Understudy.
	MaxConnectBackoff time.Duration

	// Logger receives a record at slog.LevelWarn for each failover, for an outage, when a source of
	// endpoints fails, and when a server rejects keepalive pings, in addition to gRPC's log. docs/log.md describes
	// the records. The handler receives failovers in order, from one goroutine at a time, and may
	// block. The default is nil: no records. Source: Understudy.
	Logger *slog.Logger
	// PriorityChanged is called with the priority in use when the channel chooses its first
	// priority and on each change. The calls are made in order, from one goroutine at a time, and
	// no RPC waits for them, so the function may block and make RPCs itself. It is not called after
	// Close or while the channel is idle. The default is nil: no function is called. Source:
	// Understudy.
	PriorityChanged func(PriorityInUse)
}

// OutlierDetection controls whether endpoints whose calls fail are ejected.
type OutlierDetection int

// Values for OutlierDetection.
const (
	// AsClusterSays follows the configuration of the endpoints' Envoy clusters.
	AsClusterSays OutlierDetection = iota
	// On enables outlier detection with settings that suit priorities with few endpoints, and
	// ignores the clusters' configuration.
	On
	// Off disables outlier detection, and ignores the clusters' configuration.
	Off
)

// Never is a value for Refresh: names are looked up again only when a connection fails.
const Never time.Duration = -1

// RetryThrottling limits retries (gRFC A6): each failed call takes one token, each successful call
// returns TokenRatio tokens, and retries are allowed while more than half of MaxTokens remain. The
// zero value means no throttling.
type RetryThrottling struct {
	// MaxTokens is greater than 0 and at most 1000.
	MaxTokens float64
	// TokenRatio is greater than 0.
	TokenRatio float64
}

// Recommended returns the recommended options, which the README, the demo and the benchmarks use.
// They require servers that allow their keepalive pings: see ServerKeepalive. Recommended does not
// enable retries of any method: set RetryMethods to the methods that are safe to retry.
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

// PriorityInUse describes the priority that a channel sends its calls to. Use it in
// Options.PriorityChanged for alerts, readiness probes or feature switches.
type PriorityInUse struct {
	// Target is the target of the channel, without passwords and tokens.
	Target string
	// Index is the number of the priority; 0 is the highest. It is -1 if no priority can take calls
	// and calls fail. With Overflow, a priority that is connected stays in use while others take the
	// calls that it cannot carry: see the log's records of shares.
	Index int
	// Name is the name of the priority in the log, such as "p0 us-east/a, us-east/b", or "none".
	Name string
	// State is READY if calls are being sent, CONNECTING if calls wait for a connection, IDLE if
	// the next call starts a connection, and TRANSIENT_FAILURE if no priority can take calls.
	State connectivity.State
	// Since is the time at which the priority came into use. It does not change when State changes.
	Since time.Time
	// Why is the reason for the change, worded as in the log: why the previous priority failed, or
	// why no priority can take calls. It is empty for the initial highest priority.
	Why string
}

func (o Options) inUseReporter() *stateattr.InUseReporter {
	changed := o.PriorityChanged
	if changed == nil {
		return nil
	}
	return stateattr.NewInUseReporter(func(p stateattr.PriorityInUse) { changed(PriorityInUse(p)) })
}
