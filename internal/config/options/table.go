package options

import (
	"math"
	"time"

	"github.com/understudy-lb/understudy/internal/net/location"
)

// Settings are the settings of a channel's policies. The zero value means gRFC A56's defaults.
type Settings struct {
	// FailoverTimeout is how long a priority may take to connect (gRFC A56). 0 or less means 10 s.
	FailoverTimeout time.Duration
	// SlowStart is the time in which the share of a new endpoint grows to its full value. 0 disables
	// slow start.
	SlowStart time.Duration
	// EndpointPolicy picks the endpoints of a locality or of a priority. "" means
	// WeightedRoundRobin.
	EndpointPolicy EndpointPolicy
	// PerPriority gives EndpointPolicy all endpoints of a priority in one list.
	PerPriority bool
	WarmStandby int
	// Overflow sends the calls that a priority cannot carry to the next one, and refuses those that
	// none can.
	Overflow bool
	// Ramp is the time in which the calls of a priority that recovers grow to all calls. 0 means 8 s.
	Ramp time.Duration
	// MaxConnectBackoff is the longest backoff between attempts to connect, or 0 for gRPC's.
	// Package stateattr passes the setting to the policies.
	MaxConnectBackoff time.Duration
	// OutlierDetection ejects endpoints whose calls fail, and avoids priorities whose endpoints are
	// all ejected (gRFC A50). It has no effect with pick_first.
	OutlierDetection OutlierDetection

	// Zone, Region and Node are the client's location as set in options. The method Location also
	// returns what the environment and sources know.
	Zone, Region, Node string
	// Here returns the client's complete location. Package join sets it. It is nil in tools that
	// have no channel.
	Here location.Teller
	// Prefer selects which endpoints count as near. "none" means no preference, and "" the
	// preference of the discovery mechanism.
	Prefer string

	// Subset is the maximum number of endpoints of a locality to use. 0 means all (gRFC A68).
	Subset int
	// SubsetSeed determines which endpoints are in the subset. 0 means ChannelSeed.
	SubsetSeed int
	// ChannelSeed is a random seed of the channel. Package join sets it.
	ChannelSeed uint64
}

// Location returns the client's location, as far as it is known. Call it for each answer, because a
// source may learn the location with the answer.
func (s Settings) Location() location.Location {
	if s.Here != nil {
		return s.Here.Location()
	}
	return location.Location{Region: s.Region, Zone: s.Zone, Node: s.Node}
}

// OutlierDetection selects who configures outlier detection: the clusters or the channel.
type OutlierDetection int

// The values of OutlierDetection, as in package understudy.
const (
	AsClusterSays OutlierDetection = iota
	On
	Off
)

// Scope is the part of a target in which an option may appear.
type Scope int

// The values of Scope.
const (
	Channel      Scope = iota // in the query of the whole target
	Entry                     // also in the query of one entry of a failover target
	LookedUpName              // in the query of a name that is looked up repeatedly
	FieldOnly                 // only in Options, and not in a target
)

// Option describes an option. The type of its values is that of its field in Program.
type Option struct {
	// Name is the name of the target parameter, and of the field in a policy's JSON. With a capital, it
	// is the name of the field in Go structs.
	Name  string
	Place Scope
	// Check returns an error if a value is out of range. nil means that there is no range.
	Check func(value any) error
	// AllowZero allows 0 in targets, which means Never. If a program sets it, 0 means the default.
	AllowZero bool
	// Conflicts is true if the option is set and cannot be combined with the endpoint policy, and
	// ConflictReason says why. nil means that it can be.
	Conflicts      func(Settings) bool
	ConflictReason string

	// Default, Range and Source are Markdown for docs/options.md.
	Default, Range, Source string
}

// endpointPolicy is the option that others conflict with.
const endpointPolicy = "endpointPolicy"

// longest is for durations without a limit of their own.
const longest time.Duration = math.MaxInt64

var table = []Option{
	{Name: "authority", Place: Entry, Default: "the name in the target ([targets](targets.md#targets))", Range: "a name, optionally with a port", Source: "gRPC"},
	{Name: "failoverTimeout", Check: within(1, longest, wantDuration+", of more than 0s"), Default: "`10s`", Range: "more than `0s`", Source: "gRFC A56"},
	{Name: "warmStandby", Check: within(0, 128, "0 to 128"), Default: "`0`: none", Range: "`0` to `128`", Source: "ours"},
	{Name: "overflow", Default: "`false`", Range: "`true`, `false`", Source: "ours"},
	{Name: "ramp", Check: within(time.Second, time.Hour, wantDuration+", from 1s to 1h0m0s"), Default: "`8s`", Range: "`1s` to `1h`", Source: "ours"},
	{Name: "slowStart", Check: within(0, longest, wantDuration+", of 0s and more"),
		Conflicts: func(s Settings) bool { return s.SlowStart != 0 && !s.EndpointPolicy.IsDefault() }, ConflictReason: "only weighted_round_robin has a slow start",
		Default: "`0s`: none", Range: "`0s` or more; only with `weighted_round_robin`", Source: "Envoy's slow start, with aggression 1 and a minimum of 10 %"},
	{Name: endpointPolicy, Check: isPolicy,
		Default: "`weighted_round_robin`", Range: "`weighted_round_robin`, `pick_first`, or another registered policy, with or without its configuration: `NAME{…}`", Source: "gRFC A34, A62, and ours"},
	{Name: "perPriority", Default: "`false`; `true` for `ring_hash_experimental`", Range: "`true`, `false`", Source: "gRFC A42"},
	{Name: "outlierDetection",
		Conflicts: func(s Settings) bool { return s.OutlierDetection == On && s.EndpointPolicy.IsPickFirst() }, ConflictReason: "one pick_first over several endpoints does not notice that one of them is ejected",
		Default: "the setting of each [cluster](xds.md#outlier-detection), otherwise `false`", Range: "`true`, `false`; not with `pick_first`", Source: "gRFC A50, and ours"},
	{Name: "prefer", Check: oneOf("zone", "hints", "none"), Default: "`none`; for `kubernetes:` targets `hints`", Range: "`zone`, `hints`, `none`", Source: "ours"},
	{Name: "zone", Check: isName, Default: "`UNDERSTUDY_ZONE`, or the [bootstrap](near.md#where-the-client-is) of `eds:`", Range: "a name", Source: "ours"},
	{Name: "region", Check: isName, Default: "`UNDERSTUDY_REGION`, or the bootstrap of `eds:`", Range: "a name", Source: "ours"},
	{Name: "node", Check: isName, Default: "`UNDERSTUDY_NODE`", Range: "a name", Source: "ours"},
	{Name: "subset", Check: within(1, math.MaxInt, "1 and more"),
		Conflicts: func(s Settings) bool { return s.Subset != 0 && s.EndpointPolicy.IsPickFirst() }, ConflictReason: "it holds one connection for a locality, however many endpoints there are",
		Default: "none: all endpoints", Range: "1 or more; not with `pick_first`", Source: "gRFC A68"},
	{Name: "subsetSeed", Check: within(1, math.MaxInt, "1 and more"), Default: "random for each channel", Range: "1 or more", Source: "gRFC A68"},
	{Name: "refresh", Place: LookedUpName, Check: within(time.Second, longest, wantDuration+", of 1s and more, or 0s for none"), AllowZero: true,
		Default: "`0s` (none) for DNS, `30s` for SRV", Range: "`1s` or more, or `0s`", Source: "ours; differs from gRFC A37 if answers rotate"},
	{Name: "removeAfter", Place: LookedUpName, Check: within(1, math.MaxInt, "1 and more"), Default: "`2`", Range: "1 or more", Source: "ours"},
	{Name: "MaxConnectBackoff", Place: FieldOnly, Check: within(time.Second, longest, wantDuration+", of 1s and more"),
		Default: "`120s`", Range: "`1s` or more", Source: "gRPC's connection backoff"},
}

// Table returns the options in the order of the documentation. The caller must not change it.
func Table() []Option { return table }
