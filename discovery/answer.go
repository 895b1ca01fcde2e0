package discovery

import (
	"time"

	"google.golang.org/grpc/resolver"
)

// Answer is what a source has found. Neither it nor what it points to may change after it was
// passed to a Receiver, because channels share it.
type Answer struct {
	// Priorities are ordered: calls go to the first one that can take them (gRFC A56). A priority
	// without usable endpoints stays in the list, so that it keeps its number.
	Priorities []Priority
	// Drops apply to the calls of every priority, one after the other, each to the calls that the
	// ones before it let through. Default: none.
	Drops []Drop
	// Resolved holds the endpoints of a gRPC resolver with their attributes, in place of
	// Priorities. They are one priority with one locality. FromResolver sets it.
	Resolved []resolver.Endpoint

	// Identity identifies the content, such as a hash of it: answers with the same Identity are
	// equal, and repeating one costs nothing. A server's version is not suitable, because it
	// changes without the content, and goes back after a restore. Answers without an Identity are
	// compared field by field, which takes about a millisecond for 10,000 endpoints.
	Identity string
	// Version is the source's name for this state, shown to people; "" for none.
	Version string
	// Service is the name of the service or cluster of these endpoints, for metrics and messages;
	// "" for none. Answers with different Services share no priorities.
	Service string

	// Empty declares that an answer without endpoints is intended: calls then fail, or go to the
	// next priority. Without it such an answer is a failure and the last one stays in use, so that
	// a starting registry or a query without a match does not take all clients down. It has no
	// effect if there are endpoints.
	Empty bool
	// Why is one line that explains why no endpoint of the answer can take calls. The errors of
	// calls, the log and the page show it, together with a later failure. The default is a count of
	// the endpoints by health. It has no effect if an endpoint can take calls.
	Why string
	// Notes are single lines about input without effect. The log has each new one once, and the
	// page shows them while the answer is in use.
	Notes []string
	// Names holds what a source that looks up several names knows of each, nil for other sources.
	// It is stored with the answer and not compared. If a name cannot be looked up after the
	// channel was idle, the source can use the stored addresses of this name alone
	// (Receiver.Remembered).
	Names map[string]Name
}

// Name is a source's knowledge of one of its names.
type Name struct {
	Addresses []string  // from the last successful lookup
	Until     time.Time // when they were last known to be valid; zero if they still are
}

// Priority is a group of localities that share the calls.
type Priority struct {
	// Localities have different names.
	Localities []Locality
}

// Locality is a group of endpoints in one place.
type Locality struct {
	// Region, Zone and SubZone are its location, as far as it is known.
	Region, Zone, SubZone string
	// Weight is the locality's share of the calls relative to the others of its priority. 0 is the
	// sum of the weights of its usable endpoints. The sum of a priority is at most 4,294,967,295.
	Weight uint32
	// Endpoints may be empty, and none of them need be usable.
	Endpoints []Endpoint
}

// Endpoint is one server.
type Endpoint struct {
	// Addresses are host:port with an IP address or a name, or unix:/path. A usable endpoint has at
	// least one. All lead to the same server; the first one identifies the endpoint (gRFC A61). An
	// endpoint that occurs twice in an answer counts once: the healthier occurrence, or else the
	// first.
	Addresses []string
	// Weight is the endpoint's share of the calls relative to the others of its locality. 0 is 1.
	// The sum of a locality is at most 4,294,967,295.
	Weight uint32
	// Health is the source's view of the endpoint. The zero value can take calls.
	Health Health
	// Hostname is the name in the server's certificate, "" if the source does not know it. It has
	// no effect unless the user trusts the source with names (Mechanism.TrustNames).
	Hostname string
	// Node is the machine that it runs on, "" if unknown.
	Node string
	// ForZones and ForNodes are hints of the source: the zones and nodes whose clients should use
	// this endpoint. Default: none.
	ForZones, ForNodes []string
}

// Health is a source's view of an endpoint's health.
type Health int

// The kinds of health. Unknown and Healthy endpoints can take calls.
const (
	Unknown   Health = iota // not checked
	Healthy                 // it serves
	Draining                // it finishes its calls and gets no new ones
	Unhealthy               // it does not serve
)

var healthNames = [...]string{Unknown: "unknown", Healthy: "healthy", Draining: "draining", Unhealthy: "unhealthy"}

// String returns the name in lower case.
func (h Health) String() string {
	if h < 0 || int(h) >= len(healthNames) {
		h = Unhealthy
	}
	return healthNames[h]
}

// Drop is a share of the calls that clients fail at once with UNAVAILABLE.
type Drop struct {
	// Category is the drop's name in metrics.
	Category string
	// PerMillion is at most 1,000,000.
	PerMillion uint32
}
