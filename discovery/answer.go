package discovery

import (
	"time"

	"google.golang.org/grpc/resolver"
)

// Answer is what a source of endpoints has found. Nobody changes it, or what it points to,
// once it was handed over: channels share it.
type Answer struct {
	// Priorities are in order: calls go to the first one that can take them (gRFC A56). None
	// of them is left out because nothing of it can take calls now: it keeps its place, and
	// comes back as it should.
	Priorities []Priority
	// Drops apply to the calls of each priority, one after the other, each to what those
	// before it left. The default is none.
	Drops []Drop
	// Resolved are the endpoints of a gRPC resolver, with their attributes, in place of
	// Priorities: one priority with one locality. FromResolver sets them.
	Resolved []resolver.Endpoint

	// Identity stands for the content: answers with the same one are the same, and repeating
	// one costs nothing. A hash of the content will do. What a server calls its version will
	// not: it moves without the content, and goes back after a restore. Answers without one
	// are compared as they are, which takes about a millisecond for 10,000 endpoints.
	Identity string
	// Version is what the source calls this state of what it knows, for people; "" where it
	// has no name for it.
	Version string
	// Service is the name of the service or cluster whose endpoints these are, for metrics and
	// messages; "" where it has none. The priorities of another one are others.
	Service string

	// Empty says that it is meant where the answer holds no endpoint: calls then fail, or go
	// to the next priority. Without it such an answer counts as a failure, and the last one
	// stays in use: a registry that is starting, or a query that matches nothing for a moment,
	// must not take all clients down. It has no effect where there are endpoints.
	Empty bool
	// Why says in one line why nothing of the answer can take calls. Calls that fail for it,
	// the log and the page show it, together with the reason of a later failure. "" stands
	// for a count of the endpoints by their health. It has no effect where one can take calls.
	Why string
	// Notes say in a line each what was given and has no effect. The log has them while they
	// are new, and the page as long as the answer is in use.
	Notes []string
	// Names are what a source that looks up several names knows of each, nil for others. They
	// are kept with the answer, and are not compared. Where the channel was idle, and a name
	// cannot be looked up when it wakes up, that name alone has what it had
	// (Receiver.Remembered), while the others have what they have now.
	Names map[string]Name
}

// Name is what a source knows of one of several names that it looks up.
type Name struct {
	Addresses []string  // those that it had when it was looked up last
	Until     time.Time // until when that was so, zero where it still is
}

// Priority is a group of localities that take the calls together.
type Priority struct {
	// Localities have different names.
	Localities []Locality
}

// Locality is a group of endpoints that are near one another.
type Locality struct {
	// Region, Zone and SubZone say where it is, as far as that is known.
	Region, Zone, SubZone string
	// Weight is the locality's share of the calls, relative to the others of its priority. 0
	// stands for the sum of the weights of its endpoints that can take calls. The sum of a
	// priority is at most 4,294,967,295.
	Weight uint32
	// Endpoints may be none, and may all be unable to take calls: the locality keeps its place.
	Endpoints []Endpoint
}

// Endpoint is one server.
type Endpoint struct {
	// Addresses are host:port with an IP address or a name, or unix:/path, at least one where
	// the endpoint can take calls. All lead to the same server; the first one is the address by
	// which the endpoint is known (gRFC A61). An endpoint that an answer has twice is one: the
	// healthier of both, or else the first.
	Addresses []string
	// Weight is the endpoint's share of the calls, relative to the others of its locality. 0
	// stands for 1. The sum of a locality is at most 4,294,967,295.
	Weight uint32
	// Health is what the source knows of it; the zero value can take calls.
	Health Health
	// Hostname is the name in the server's certificate, "" where the source does not know it.
	// It has no effect unless the user trusts the source with names (Part.TrustNames).
	Hostname string
	// Node is the machine that it runs on, "" where that is not known.
	Node string
	// ForZones and ForNodes name the zones and the nodes whose clients had best use this
	// endpoint, by the source's own hints. The default is none.
	ForZones, ForNodes []string
}

// Health is what a source knows of an endpoint's health.
type Health int

// The kinds of health. An endpoint that is Unknown or Healthy can take calls.
const (
	Unknown   Health = iota // nobody has looked
	Healthy                 // it serves
	Draining                // it ends: calls that run are finished, new ones go elsewhere
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

// Drop is a share of the calls that clients fail at once, with UNAVAILABLE.
type Drop struct {
	// Category is its name, for metrics.
	Category string
	// PerMillion is at most 1,000,000.
	PerMillion uint32
}
