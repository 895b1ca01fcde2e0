package discovery

import (
	"cmp"
	"time"

	"google.golang.org/grpc/resolver"
)

// Answer is the set of endpoints that a source has found. Channels share answers, so don't modify
// an answer, or anything it points to, once it has been passed to a Receiver.
type Answer struct {
	// Priorities are in order, with the highest first. Calls use the first priority that can take
	// them (gRFC A56). Include priorities that have no usable endpoints too, so that the indices of
	// the other priorities don't change.
	Priorities []Priority
	// Drops apply to the calls of each priority, in order. Each of them only sees the calls that
	// the ones before it have let through.
	Drops []Drop
	// Resolved has the endpoints of a gRPC resolver, with their attributes. They form a single
	// priority with a single locality, and Priorities is ignored. FromResolver sets this field.
	Resolved []resolver.Endpoint

	// Identity identifies the content of the answer. If two answers have the same identity, we
	// treat them as equal, so it costs nothing to repeat an answer. A hash of the content is a good
	// choice. Don't use a version that's assigned by a server, because the content can change
	// without a new version, and versions can go back after a restore. If answers have different
	// identities or none at all, we compare them field by field, which takes up to a millisecond
	// for 10,000 endpoints.
	Identity string
	// Version is the source's version of the answer, for logs and the debug page. It may be "".
	Version string
	// Service is the name of the service or cluster that the endpoints belong to, for metrics and
	// messages. It may be "". Priorities of different services are distinct, even if their
	// endpoints are the same.
	Service string

	// Empty says that an answer without endpoints is intentional. Calls then fail or use the next
	// priority. If it isn't set, an answer without endpoints counts as a failure, and the last good
	// answer stays in use. That way, clients aren't all taken down by a registry that's still
	// starting, or by a query that doesn't match anything for a moment. Empty has no effect if
	// there are endpoints.
	Empty bool
	// Why explains in one line why none of the answer's endpoints can take calls. It shows up in
	// the errors of calls, in the log and on the debug page, together with the reason for any later
	// failure. The default is a count of the endpoints by health. Why has no effect if an endpoint
	// can take calls.
	Why string
	// Notes lists settings that have no effect, one per line. New notes are logged, and the debug
	// page shows all notes of the current answer.
	Notes []string
	// Names has the result of each lookup if a source looks up several names, and is nil for all
	// other sources. It's cached with the answer, but ignored when answers are compared. If one of
	// the lookups fails when an idle channel is used again, the source can reuse the cached
	// addresses of just that name (see Receiver.Remembered).
	Names map[string]Name
}

// Name is the result of looking up one of a source's names.
type Name struct {
	Addresses []string  // the addresses that the last successful lookup found
	Until     time.Time // the time until which Addresses were known to be current; zero if they still are
}

// Priority is a list of localities that share the calls by weight.
type Priority struct {
	// Localities must have distinct names.
	Localities []Locality
}

// Locality is a group of endpoints that are close to each other.
type Locality struct {
	// Region, Zone and SubZone identify the locality. Any of them may be "".
	Region, Zone, SubZone string
	// Weight is the locality's share of the calls, relative to the other localities in its
	// priority. If it's 0, we use the sum of the weights of the locality's usable endpoints. The
	// sum over a priority is at most 4,294,967,295.
	Weight uint32
	// Endpoints may be empty or have no usable endpoints.
	Endpoints []Endpoint
}

// Endpoint is one server.
type Endpoint struct {
	// Addresses are either host:port, where the host can be an IP address or a name, or unix:/path.
	// A usable endpoint has at least one. All addresses lead to the same server, and the first one
	// identifies the endpoint (gRFC A61). If an answer has the same endpoint twice, we use the
	// healthier entry, or the first one if they're equally healthy.
	Addresses []string
	// Weight is the endpoint's share of the calls, relative to the other endpoints in its locality.
	// 0 means the same as 1. The sum over a locality is at most 4,294,967,295.
	Weight uint32
	// Health is the endpoint's health according to the source. The zero value is Unknown, and such
	// an endpoint can take calls.
	Health Health
	// Hostname is the name in the server's certificate, or "" if unknown. It's only used if
	// Mechanism.TrustNames is set.
	Hostname string
	// ForZones and ForNodes are hints from the source. Clients in these zones and on these nodes
	// should prefer this endpoint.
	ForZones, ForNodes []string
}

// Health is the state of an endpoint according to its source.
type Health int

// The values of Health. Unknown and Healthy endpoints can take calls.
const (
	Unknown   Health = iota // the source hasn't checked
	Healthy                 // the endpoint serves calls
	Draining                // the endpoint finishes its calls, but doesn't accept new ones
	Unhealthy               // the endpoint doesn't serve calls
)

var healthNames = map[Health]string{Unknown: "unknown", Healthy: "healthy", Draining: "draining"}

// String returns the name of the health in lower case.
func (h Health) String() string { return cmp.Or(healthNames[h], "unhealthy") }

// Drop makes clients fail a fraction of their calls right away, with UNAVAILABLE.
type Drop struct {
	// Category is the name of the drop in metrics.
	Category string
	// PerMillion is how many calls out of a million are dropped, at most 1,000,000.
	PerMillion uint32
}
