// Package discovery defines the interface between Understudy and sources of endpoints. A program
// that uses a source also imports package understudy, which builds resolvers from sources.
//
// A source finds the endpoints of a target and sends them, or an error, to a Receiver. It has no
// access to policies, service configs or the channel. The code behind the Receiver joins the
// answers of all sources in priority order, gives child policies stable names, caches the last good
// answer, merges the user's service config into the result, and updates the channel.
//
// The packages below this one contain sources, such as file, eds, srv and failover. To add a
// source, call Register with a function that parses a target and returns a Source; the package's
// examples show complete sources. There are three ways to create a Source:
//
//   - Implement the interface, for a source that pushes its answers.
//   - Call Poll, for a source that is polled.
//   - Call FromResolver, to wrap a gRPC resolver.
//
// Shared lets the channels of a process share a source, Refreshed re-resolves a source at an
// interval, and package sourcetest tests a source against the rules of this package.
//
// An answer without endpoints counts as a failure, and the last good answer stays in use, unless
// Answer.Empty is set.
//
// docs/options.md lists the options of all sources, for programs and for targets.
package discovery

import "time"

// Source finds the endpoints of one target.
type Source interface {
	// Check returns an error if the target's options or the environment are invalid. If read is
	// set, it also checks the contents of files. Check opens no connection and starts nothing, and
	// it may be called at any time, from several goroutines. Errors that only a server can detect
	// are not reported by Check, but through Receiver.Fail. understudy.NewClient calls
	// Check(false), and understudy.Validate calls Check(true).
	Check(read bool) error
	// Start begins to look for endpoints for one channel, and returns without waiting for them. It
	// may call r before it returns; those calls take effect when all sources of the channel have
	// been started. Start returns an error only if Check(false) would also return one. The
	// mechanism then counts as failed, and its source is not started again until the channel leaves
	// idle mode. The other mechanisms are not affected. Close is not called if Start failed.
	//
	// The same Source is started once for each channel that uses it, from any goroutine and
	// possibly concurrently. It is started again after Close when an idle channel is used again.
	Start(r *Receiver) (Started, error)
}

// Started holds the functions that control a started source. If a field is nil, the source does not
// support that function.
type Started struct {
	// Close stops the source. It is called once, from any goroutine, possibly from inside a call to
	// the Receiver, so it must not wait for such a call to return. The goroutines of the source may
	// end after Close returns; anything that they still send to the receiver is ignored.
	Close func()
	// ResolveNow requests a re-resolution after a connection to one of the endpoints has failed.
	// Leave it nil if the source sends changes without a request (ignore_reresolution_requests of
	// gRFC A37 and A56). ResolveNow may be called from any goroutine until Close, but calls do not
	// overlap. It should return without blocking.
	ResolveNow func()
	// EndpointsFailed reports that connections to some endpoints fail. It is meant for a source
	// that sends changes without a request, because such a source may lose its server without
	// seeing an error. It is called in the same way as ResolveNow; one call may report any number
	// of failures.
	EndpointsFailed func()
	// Confirmed returns the time until which the last answer is known to be current. Set it if the
	// source may lose its server without noticing. It is called shortly before Close, once for each
	// channel that shares the source. If Confirmed is nil, the last answer counts as current until
	// Close, or until the source failed.
	Confirmed func() time.Time
}

func (s *Started) close() {
	if s.Close != nil {
		s.Close()
	}
}

// Mechanism is one discovery mechanism of a channel (gRFC A37). It has one source, whose endpoints
// form one or more priorities.
type Mechanism struct {
	// Name identifies the mechanism in logs, metrics and errors, so it must not contain a secret.
	// It must be valid UTF-8 and unique in the target. The only mechanism of a target may have an
	// empty name. The certificates of endpoints are verified against Authority if the mechanism
	// has a name, and against the channel's authority otherwise.
	Name string
	// Source finds the mechanism's endpoints.
	Source Source
	// Authority is the authority that a channel to this mechanism alone would have,
	// percent-encoded. If it is "", the authority that gRPC derives from the target is used. The
	// authority of the first mechanism is also the channel's authority.
	Authority string
	// TrustNames means that an endpoint's certificate is verified against the Hostname of its
	// answer, if it has one, instead of Authority. Anyone who can change the answers of the source
	// then chooses the names, so set TrustNames only if the user asks for it. An authority that the
	// user sets takes precedence.
	TrustNames bool
	// Prefer is the default of the option "prefer" for the mechanism's endpoints: "hints" for a
	// source whose hints are meant to be followed, or "" for no preference. It has no effect, and
	// nothing is logged, if the client's location is unknown.
	Prefer string
	// OutlierDetection is the configuration of understudy_outlier_detection for the mechanism: a
	// JSON object with the fields of gRFC A50 except childPolicy, or "" for none. It is used only
	// in a list that a source passes to Receiver.Mechanisms, and only if the channel does not
	// configure outlier detection itself.
	OutlierDetection string

	// authorityFromOption is set if Authority comes from an option of a nested target instead of
	// from the source. An authority that the options of the channel set does not replace it.
	authorityFromOption bool
}
