package options

import (
	"time"

	"github.com/understudy-lb/understudy/internal/location"
)

// Settings are the settings of a channel's policies. The zero value stands for gRFC A56's
// defaults.
type Settings struct {
	// FailoverTimeout is how long a priority may take to connect before the next one is
	// used (gRFC A56). 0 or less stands for the default, 10 s.
	FailoverTimeout time.Duration
	// FailbackDelay is how long a priority must have been READY again before calls go
	// back to it. 0 is A56's behaviour: at once.
	FailbackDelay time.Duration
	// SlowStart is how long the share of an endpoint grows after it was connected,
	// until it is the one of its weight. 0 turns it off.
	SlowStart time.Duration
	// PickFirst sends the calls of a locality to the first of its endpoints that
	// connects (gRFC A62). Otherwise they go to all by their weights.
	PickFirst bool
	// MinReady is the part of a priority's weight that is to be READY: below that the
	// calls go to the next one that has as much, if there is one. They come back at
	// MinReadyRecovery, or at MinReady where that is more. An endpoint that is connecting
	// counts once it is READY or has failed.
	MinReady, MinReadyRecovery float64
	// WarmStandby is how many of the priorities below the one in use are connected before
	// they are needed. 0 is A56's behaviour: none.
	WarmStandby int
	// FastFailover says that a priority that has lost its connections, of which it can hold
	// two at least, is not waited for while a lower one is READY. Otherwise it has
	// FailoverTimeout to connect again. With PickFirst a locality holds one.
	FastFailover bool
	// FailbackJitter is the window over which the clients of a fleet spread their way
	// back: each waits for a random part of it beyond FailbackDelay.
	FailbackJitter time.Duration
	// MaxFailbackDelay is what FailbackDelay grows to, doubling, while a priority keeps
	// failing again. 0 lets it stay as it is.
	MaxFailbackDelay time.Duration
	// ResetBackoff says that where nothing is READY, the first endpoint that connects ends
	// the backoffs of the others. It travels in the channel's attributes.
	ResetBackoff bool
	// OutlierDetection takes endpoints whose calls fail out of use for a while, and
	// priorities whose endpoints all do (gRFC A50). It wins over what clusters say of
	// it, and has no effect with PickFirst, which does not notice.
	OutlierDetection bool
	// NoOutlierDetection does none, whatever clusters say of it.
	NoOutlierDetection bool

	// Zone, Region and Node are the client's own place, as far as the target or the program
	// gives it. Method Place has the whole.
	Zone, Region, Node string
	// Here tells that place, with what the environment and sources know of it. Package
	// resolving sets it; nil is for tools without a channel.
	Here location.Teller
	// Prefer says which endpoints are preferred for their place: "none" for none, "" for what a part says.
	Prefer string
	// ZoneMinEndpoints is how many endpoints a near group has at least, 0 for the default, 1. One
	// with fewer is merged with the next.
	ZoneMinEndpoints int
	// ZoneCallers is how many callers each zone has, for the preference "balance"; "" where each with
	// endpoints has as many.
	ZoneCallers string

	// Subset is how many endpoints of a locality are used, 0 for all (gRFC A68).
	Subset int
	// SubsetSeed chooses them, 0 for ChannelSeed.
	SubsetSeed int
	// ChannelSeed is the channel's own, by chance. Package resolving sets it.
	ChannelSeed uint64
}

// Location returns where the client runs, as far as that is known now. Ask it each time when an answer
// of a source becomes a tree: the source may have learnt it just before.
func (s Settings) Location() location.Location {
	if s.Here != nil {
		return s.Here.Location()
	}
	return location.Location{Region: s.Region, Zone: s.Zone, Node: s.Node}
}

// Kind is the kind of an option's value.
type Kind int

// The kinds.
const (
	Text     Kind = iota // string
	Duration             // time.Duration
	Count                // int
	Fraction             // float64
	Bool                 // bool
	Toggle               // true, false, or as clusters say; a Settings has two fields for it
	Name                 // string, see location.Problem
	Choice               // string, one of Choices
	Callers              // string, see location.Callers
)

// wants says what the text of a value is to be.
var wants = map[Kind]string{
	Duration: "a duration such as 10s",
	Count:    "a whole number such as 1",
	Fraction: "a number from 0 to 1, such as 0.6",
	Bool:     "true or false",
	Toggle:   "true or false",
}

// Scope is where an option may be given, beside a program.
type Scope int

// The places.
const (
	Channel Scope = iota // in the query of a whole target
	Part                 // in that of a part, too
	Lookups              // in that of a target or a part that looks up names
	Nowhere
)

// Option is a row of the table.
type Option struct {
	// Name is that of the parameter of a target, and of a policy's configuration where the
	// policy has it. Field is that of the fields of understudy.Options, Program, Settings and
	// the configuration of a policy, each where it has one.
	Name, Field string
	Kind        Kind
	Place       Scope

	// Least and Most are the range. Beside it 0 is allowed where OrZero is set. In a program 0
	// stands for the default.
	Least, Most float64 // seconds for a duration; Most 0 for no limit
	OrZero      bool
	// Choices are the values of a Choice.
	Choices []string
	// AtLeast names another option, which is no more than this one unless this is 0.
	AtLeast string
	// Not names another option that is not to be had together with this one, and Why.
	Not, Why string

	// Default, Range and Source are for people, in Markdown.
	Default, Range, Source string
}

const day = 24 * 3600

// table has the options, in the order in which the page of options has them.
var table = []Option{
	{
		Name: "authority", Field: "Authority", Kind: Text, Place: Part,
		Default: "the file's name without its extension, or its `cluster`; the cluster; the name whose SRV records it is; the part",
		Range:   "a name, with a port if need be", Source: "gRPC",
	},
	{
		Name: "failoverTimeout", Field: "FailoverTimeout", Kind: Duration, Least: 1e-9,
		Default: "`10s`", Range: "more than `0s`", Source: "gRFC A56",
	},
	{
		Name: "failbackDelay", Field: "FailbackDelay", Kind: Duration, Most: day,
		Default: "`0s`: at once", Range: "`0s` to `24h`", Source: "ours",
	},
	{
		Name: "failbackJitter", Field: "FailbackJitter", Kind: Duration, Most: day,
		Default: "`0s`: none", Range: "`0s` to `24h`", Source: "ours",
	},
	{
		Name: "maxFailbackDelay", Field: "MaxFailbackDelay", Kind: Duration, Most: day, AtLeast: "failbackDelay",
		Default: "`0s`: as `failbackDelay`", Range: "`0s`, or `failbackDelay` to `24h`", Source: "ours",
	},
	{
		Name: "warmStandby", Field: "WarmStandby", Kind: Count, Most: 128,
		Default: "`0`: none", Range: "`0` to `128`", Source: "ours",
	},
	{
		Name: "fastFailover", Field: "FastFailover", Kind: Bool,
		Default: "`false`", Range: "`true`, `false`", Source: "ours",
	},
	{
		Name: "slowStart", Field: "SlowStart", Kind: Duration,
		Not: "pickFirst", Why: "the one endpoint that has all calls cannot have a part of them",
		Default: "`0s`: none", Range: "`0s` and more; not with `pickFirst`", Source: "Envoy's slow start: aggression 1, at least 10 %",
	},
	{
		Name: "pickFirst", Field: "PickFirst", Kind: Bool,
		Default: "`false`", Range: "`true`, `false`", Source: "gRFC A62",
	},
	{
		Name: "minReady", Field: "MinReady", Kind: Fraction, Most: 1,
		Default: "`0`: as long as anything is READY", Range: "`0` to `1`", Source: "ours",
	},
	{
		Name: "minReadyRecovery", Field: "MinReadyRecovery", Kind: Fraction, Most: 1, AtLeast: "minReady",
		Default: "`0`: as `minReady`", Range: "`0`, or `minReady` to `1`", Source: "ours",
	},
	{
		Name: "outlierDetection", Field: "OutlierDetection", Kind: Toggle,
		Not: "pickFirst", Why: "one pick_first over several endpoints does not notice that one of them is ejected",
		Default: "as each [cluster](xds.md#outlier-detection) says: else `false`", Range: "`true`, `false`; not with `pickFirst`", Source: "gRFC A50, and ours",
	},
	{
		Name: "prefer", Field: "Prefer", Kind: Choice, Choices: []string{"zone", "node", "hints", "balance", "none"},
		Default: "`none`: all endpoints of a priority alike; for `kubernetes:` `hints`", Range: "`zone`, `node`, `hints`, `balance`, `none`", Source: "ours; `balance` is Envoy's zone-aware formula",
	},
	{
		Name: "zone", Field: "Zone", Kind: Name,
		Default: "`UNDERSTUDY_ZONE`; for `eds:` then the zone of the bootstrap's node; else none", Range: "a name", Source: "ours",
	},
	{
		Name: "region", Field: "Region", Kind: Name,
		Default: "`UNDERSTUDY_REGION`; for `eds:` then the region of the bootstrap's node; else none", Range: "a name", Source: "ours",
	},
	{
		Name: "node", Field: "Node", Kind: Name,
		Default: "`UNDERSTUDY_NODE`, else none", Range: "a name", Source: "ours",
	},
	{
		Name: "zoneMinEndpoints", Field: "ZoneMinEndpoints", Kind: Count, Least: 1,
		Default: "`1`", Range: "1 and more", Source: "ours",
	},
	{
		Name: "zoneCallers", Field: "ZoneCallers", Kind: Callers,
		Default: "as many in each zone that has endpoints", Range: "zones with numbers, as in `a:2,b:1`", Source: "ours",
	},
	{
		Name: "subset", Field: "Subset", Kind: Count, Least: 1,
		Not: "pickFirst", Why: "it holds one connection for a locality, however many endpoints there are",
		Default: "none: all endpoints", Range: "1 and more; not with `pickFirst`", Source: "gRFC A68",
	},
	{
		Name: "subsetSeed", Field: "SubsetSeed", Kind: Count, Least: 1,
		Default: "by chance, for each channel", Range: "1 and more", Source: "gRFC A68",
	},
	{
		Name: "refresh", Field: "Refresh", Kind: Duration, Place: Lookups, Least: 1, OrZero: true,
		Default: "DNS `0s`: none; SRV `30s`", Range: "`1s` and more, or `0s`", Source: "ours; it is against gRFC A37 as far as answers rotate",
	},
	{
		Name: "removeAfter", Field: "RemoveAfter", Kind: Count, Place: Lookups, Least: 1,
		Default: "`2`", Range: "1 and more", Source: "ours",
	},
	{
		Name: "MaxConnectBackoff", Field: "MaxConnectBackoff", Kind: Duration, Place: Nowhere, Least: 1,
		Default: "`120s`", Range: "`1s` and more", Source: "gRPC's connection backoff",
	},
}

// Table returns the options.
func Table() []Option { return table }

// find returns the row of a name.
func find(name string) (Option, bool) {
	for _, o := range table {
		if o.Name == name {
			return o, true
		}
	}
	return Option{}, false
}
