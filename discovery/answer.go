package discovery

import (
	"cmp"
	"time"

	"google.golang.org/grpc/resolver"
)

// Answer is the set of endpoints that a source has found. Channels share answers, so an answer and
// everything it points to must not be modified after it is passed to a Receiver.
type Answer struct {
	// Priorities lists the priorities, the highest first. Calls use the first priority that can
	// take them (gRFC A56). Include priorities without usable endpoints as well, so that the
	// indices of the other priorities do not change.
	Priorities []Priority
	// Drops apply to the calls of each priority, in order. Each drop applies to the calls that the
	// previous drops let through.
	Drops []Drop
	// Resolved holds the endpoints of a gRPC resolver, with their attributes. They form a single
	// priority with a single locality, and Priorities is ignored. FromResolver sets this field.
	Resolved []resolver.Endpoint

	// Identity identifies the content of the answer. Answers with equal identities are treated as
	// equal, so repeating an answer costs nothing. A hash of the content is suitable. A version
	// that a server assigns is not suitable, because the content can change under the same version,
	// and versions can go back after a restore. Answers with another identity, or without one, are
	// compared field by field, which takes up to a millisecond for 10,000 endpoints.
	Identity string
	// Version is the source's version of the answer, for logs and the debug page. It may be "".
	Version string
	// Service is the name of the service or cluster that the endpoints belong to, for metrics and
	// messages. It may be "". Priorities of different services are distinct even if their endpoints
	// are the same.
	Service string

	// Empty declares that an answer without endpoints is intended. Calls then fail or use the next
	// priority. Without Empty, such an answer counts as a failure and the last good answer stays in
	// use, so that a registry that is still starting, or a query that briefly matches nothing, does
	// not take down all clients. Empty has no effect if there are endpoints.
	Empty bool
	// Why explains in one line why no endpoint of the answer can take calls. The text appears in
	// the errors of calls, in the log and on the debug page, together with the reason for any later
	// failure. The default is a count of the endpoints by health. Why has no effect if an endpoint
	// can take calls.
	Why string
	// Notes lists the settings that have no effect, one line each. New notes are logged, and the
	// debug page shows all notes of the current answer.
	Notes []string
	// Names holds the result of each lookup, for a source that looks up several names; for other
	// sources, Names is nil. It is cached with the answer and ignored when answers are compared. If
	// a lookup fails when an idle channel is used again, the source reuses the cached addresses of
	// that name only (Receiver.Remembered).
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
	// Region, Zone and SubZone identify the locality. Each may be "".
	Region, Zone, SubZone string
	// Weight is the locality's share of the calls, relative to the other localities of its
	// priority. If it is 0, the sum of the weights of the locality's usable endpoints is used. The
	// sum over a priority is at most 4,294,967,295.
	Weight uint32
	// Endpoints may be empty or contain only unusable endpoints.
	Endpoints []Endpoint
}

// Endpoint is one server.
type Endpoint struct {
	// Addresses have the form host:port, with an IP address or a name, or unix:/path. A usable
	// endpoint has at least one address. All addresses lead to the same server, and the first one
	// identifies the endpoint (gRFC A61). If an answer contains an endpoint twice, the healthier
	// entry is used, or the first one if both are equally healthy.
	Addresses []string
	// Weight is the endpoint's share of the calls, relative to the other endpoints of its locality.
	// 0 means the same as 1. The sum over a locality is at most 4,294,967,295.
	Weight uint32
	// Health is the endpoint's health according to the source. An endpoint with the zero value,
	// Unknown, can take calls.
	Health Health
	// Hostname is the name in the server's certificate, or "" if unknown. It has no effect unless
	// Mechanism.TrustNames is set.
	Hostname string
	// ForZones and ForNodes are the source's hints: the zones and nodes whose clients should prefer
	// this endpoint.
	ForZones, ForNodes []string
}

// Health is the state of an endpoint according to its source.
type Health int

// The values of Health. Unknown and Healthy endpoints can take calls.
const (
	Unknown   Health = iota // the source has not checked
	Healthy                 // the endpoint serves calls
	Draining                // the endpoint finishes its calls and accepts no new ones
	Unhealthy               // the endpoint does not serve calls
)

var healthNames = map[Health]string{Unknown: "unknown", Healthy: "healthy", Draining: "draining"}

// String returns the name of the health in lower case.
func (h Health) String() string { return cmp.Or(healthNames[h], "unhealthy") }

// Drop makes clients fail a fraction of their calls immediately, with UNAVAILABLE.
type Drop struct {
	// Category is the name of the drop in metrics.
	Category string
	// PerMillion is the number of calls to drop out of a million. It is at most 1,000,000.
	PerMillion uint32
}
