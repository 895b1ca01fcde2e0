package options

import (
	"math"
	"time"

	"github.com/understudy-lb/understudy/internal/net/location"
)

// Settings configures a channel's policies. The zero value means the defaults of gRFC A56. For the
// fields that aren't explained here, see understudy.Options.
type Settings struct {
	FailoverTimeout time.Duration
	SlowStart       time.Duration
	EndpointPolicy  EndpointPolicy
	PerPriority     bool
	WarmStandby     int
	Overflow        bool
	Ramp            time.Duration
	// MaxConnectBackoff is the longest backoff between connection attempts, or 0 for gRPC's.
	// Policies get it through package stateattr.
	MaxConnectBackoff time.Duration
	OutlierDetection  OutlierDetection

	// Zone, Region and Node are where the client is according to the options. Location also takes
	// the environment and the sources into account.
	Zone, Region, Node string
	// Here returns everything we know about the client's location. Package join sets it. It's nil
	// in tools that don't have a channel.
	Here location.Teller
	// Prefer says which endpoints count as near. "none" turns this off, and "" leaves it to the
	// discovery mechanism.
	Prefer string

	Subset int
	// SubsetSeed determines which endpoints end up in the subset. If it's 0, we use ChannelSeed.
	SubsetSeed int
	// ChannelSeed is a random seed for each channel, set by package join.
	ChannelSeed uint64
}

// Location returns what we currently know about the client's location. Don't cache it between
// answers: a source may only learn the location along with an answer.
func (s Settings) Location() location.Location {
	if s.Here != nil {
		return s.Here.Location()
	}
	return location.Location{Region: s.Region, Zone: s.Zone, Node: s.Node}
}

// OutlierDetection says whether the clusters or the channel configure outlier detection.
type OutlierDetection int

// The following have the same values as in package understudy.
const (
	AsClusterSays OutlierDetection = iota
	On
	Off
)

type Scope int

const (
	Channel      Scope = iota // query of the whole target
	Entry                     // also allowed in the query of a single entry in a failover target
	LookedUpName              // query of a name that's looked up periodically
	FieldOnly                 // not allowed in targets, only in Options
)

// Option describes an option. Its type is that of the field in Program.
type Option struct {
	// Name is the parameter's name in targets, and the field's name in a policy's JSON. Go structs
	// use the same name with a capital letter.
	Name  string
	Place Scope
	// Check returns an error if a value is out of range. If it's nil, any value will do.
	Check func(value any) error
	// AllowZero allows 0 in targets, where it means Never. In a program, 0 is still the default.
	AllowZero bool
	// Conflicts reports whether the option is set and clashes with the endpoint policy.
	// ConflictReason says why that's a problem. It's nil if the two can always be combined.
	Conflicts      func(Settings) bool
	ConflictReason string

	// Default, Range and Source are Markdown for docs/options.md.
	Default, Range, Source string
}

const endpointPolicy = "endpointPolicy"

const longest time.Duration = math.MaxInt64 // if a duration has no limit of its own

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
