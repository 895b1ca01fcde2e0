package options

import (
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
	// MaxBackoff is the longest backoff between attempts to connect, or 0 for gRPC's.
	// Package stateattr passes the setting to the policies.
	MaxBackoff time.Duration
	// OutlierDetection ejects endpoints whose calls fail, and avoids priorities whose endpoints are
	// all ejected (gRFC A50). It overrides the configuration of clusters. It has no effect with
	// pick_first.
	OutlierDetection   bool
	NoOutlierDetection bool

	// Zone, Region and Node are the client's location as set in options. The method Location also
	// returns what the environment and sources know.
	Zone, Region, Node string
	// Here returns the client's complete location. Package resolving sets it. It is nil in tools that
	// have no channel.
	Here location.Teller
	// Prefer selects which endpoints count as near. "none" means no preference, and "" the
	// preference of the discovery mechanism.
	Prefer string

	// Subset is the maximum number of endpoints of a locality to use. 0 means all (gRFC A68).
	Subset int
	// SubsetSeed determines which endpoints are in the subset. 0 means ChannelSeed.
	SubsetSeed int
	// ChannelSeed is a random seed of the channel. Package resolving sets it.
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

// Kind is the type of an option's value.
type Kind int

// The values of Kind.
const (
	Text Kind = iota
	Duration
	Count
	Bool
	Toggle // true, false, or unset, which means the clusters' configuration; uses two fields of Settings
	Name   // string, checked by location.Problem
	Choice // string, one of Choices
	Policy // an EndpointPolicy
)

var kindText = map[Kind]string{
	Duration: "a duration such as 10s",
	Count:    "a whole number such as 1",
	Bool:     "true or false",
	Toggle:   "true or false",
}

// Scope is the part of a target in which an option may appear.
type Scope int

// The values of Scope.
const (
	Channel      Scope = iota // in the query of the whole target
	Entry                     // also in the query of one entry of a failover target
	LookedUpName              // in the query of a name that is looked up repeatedly
	FieldOnly                 // only in Options, and not in a target
)

// Option describes an option.
type Option struct {
	// Name is the name of the target parameter, and of the field in a policy's JSON. Field is the
	// name of the field in Go structs.
	Name, Field string
	Kind        Kind
	Place       Scope

	// Min and Max are the limits of the value. AllowZero also allows 0, which means the default if a
	// program sets it.
	Min, Max  float64 // in seconds for a duration; if Max is 0, there is no limit
	AllowZero bool
	Choices   []string
	// Conflicts reports whether the option cannot be combined with an EndpointPolicy, and
	// ConflictReason is the reason. nil means that it can be.
	Conflicts      func(EndpointPolicy) bool
	ConflictReason string

	// Default, Range and Source are Markdown for docs/options.md.
	Default, Range, Source string
}

var table = []Option{
	{
		Name: "authority", Field: "Authority", Kind: Text, Place: Entry,
		Default: "the name in the target ([targets](targets.md#targets))",
		Range:   "a name, optionally with a port", Source: "gRPC",
	},
	{
		Name: "failoverTimeout", Field: "FailoverTimeout", Kind: Duration, Min: 1e-9,
		Default: "`10s`", Range: "more than `0s`", Source: "gRFC A56",
	},
	{
		Name: "warmStandby", Field: "WarmStandby", Kind: Count, Max: 128,
		Default: "`0`: none", Range: "`0` to `128`", Source: "ours",
	},
	{
		Name: "overflow", Field: "Overflow", Kind: Bool,
		Default: "`false`", Range: "`true`, `false`", Source: "ours",
	},
	{
		Name: "ramp", Field: "Ramp", Kind: Duration, Min: 1, Max: 3600,
		Default: "`8s`", Range: "`1s` to `1h`", Source: "ours",
	},
	{
		Name: "slowStart", Field: "SlowStart", Kind: Duration,
		Conflicts: func(e EndpointPolicy) bool { return !e.IsDefault() }, ConflictReason: "only weighted_round_robin has a slow start",
		Default: "`0s`: none", Range: "`0s` or more; only with `weighted_round_robin`", Source: "Envoy's slow start, with aggression 1 and a minimum of 10 %",
	},
	{
		Name: "endpointPolicy", Field: "EndpointPolicy", Kind: Policy,
		Default: "`weighted_round_robin`", Range: "`weighted_round_robin`, `pick_first`, or another registered policy, with or without its configuration: `NAME{…}`", Source: "gRFC A34, A62, and ours",
	},
	{
		Name: "perPriority", Field: "PerPriority", Kind: Bool,
		Default: "`false`; `true` for `ring_hash_experimental`", Range: "`true`, `false`", Source: "gRFC A42",
	},
	{
		Name: "outlierDetection", Field: "OutlierDetection", Kind: Toggle,
		Conflicts: EndpointPolicy.IsPickFirst, ConflictReason: "one pick_first over several endpoints does not notice that one of them is ejected",
		Default: "the setting of each [cluster](xds.md#outlier-detection), otherwise `false`", Range: "`true`, `false`; not with `pick_first`", Source: "gRFC A50, and ours",
	},
	{
		Name: "prefer", Field: "Prefer", Kind: Choice, Choices: []string{"zone", "node", "hints", "none"},
		Default: "`none`; for `kubernetes:` targets `hints`", Range: "`zone`, `node`, `hints`, `none`", Source: "ours",
	},
	{
		Name: "zone", Field: "Zone", Kind: Name,
		Default: "`UNDERSTUDY_ZONE`, or the [bootstrap](near.md#where-the-client-is) of `eds:`", Range: "a name", Source: "ours",
	},
	{
		Name: "region", Field: "Region", Kind: Name,
		Default: "`UNDERSTUDY_REGION`, or the bootstrap of `eds:`", Range: "a name", Source: "ours",
	},
	{
		Name: "node", Field: "Node", Kind: Name,
		Default: "`UNDERSTUDY_NODE`", Range: "a name", Source: "ours",
	},
	{
		Name: "subset", Field: "Subset", Kind: Count, Min: 1,
		Conflicts: EndpointPolicy.IsPickFirst, ConflictReason: "it holds one connection for a locality, however many endpoints there are",
		Default: "none: all endpoints", Range: "1 or more; not with `pick_first`", Source: "gRFC A68",
	},
	{
		Name: "subsetSeed", Field: "SubsetSeed", Kind: Count, Min: 1,
		Default: "random for each channel", Range: "1 or more", Source: "gRFC A68",
	},
	{
		Name: "refresh", Field: "Refresh", Kind: Duration, Place: LookedUpName, Min: 1, AllowZero: true,
		Default: "`0s` (none) for DNS, `30s` for SRV", Range: "`1s` or more, or `0s`", Source: "ours; differs from gRFC A37 if answers rotate",
	},
	{
		Name: "removeAfter", Field: "RemoveAfter", Kind: Count, Place: LookedUpName, Min: 1,
		Default: "`2`", Range: "1 or more", Source: "ours",
	},
	{
		Name: "MaxConnectBackoff", Field: "MaxConnectBackoff", Kind: Duration, Place: FieldOnly, Min: 1,
		Default: "`120s`", Range: "`1s` or more", Source: "gRPC's connection backoff",
	},
}

// Table returns the options in the order of the documentation. The caller must not change it.
func Table() []Option { return table }

func lookUp(name string) (Option, bool) {
	for _, o := range table {
		if o.Name == name {
			return o, true
		}
	}
	return Option{}, false
}
