// Package discovery is the contract between sources of endpoints and channels. Programs also import
// package understudy, which builds resolvers of sources.
//
// A source finds endpoints. It does not know policies, service configs or channels. It sends a
// Receiver its answers, or the reasons for having none. The receiver joins sources in priority
// order, keeps the names of children and the last good answer, merges the user's service config,
// and updates the channel.
//
// The packages below this one are sources: file, eds, srv, failover, kubernetes. Your own source is
// a function that parses a target and returns a Source, given to Register; the examples of this
// package are complete. There are three ways to make a Source: implement the interface, for sources
// that push; Poll, for sources that are polled; FromResolver, for a gRPC resolver. Shared lets the
// channels of a process share a source, Refreshed asks one again at intervals, and package
// sourcetest tests a source against this contract.
//
// An answer without endpoints is a failure, and the last answer stays in use, unless its field
// Empty is set.
//
// docs/options.md lists the options of all sources, for programs and targets.
package discovery

import "time"

// Source finds the endpoints of one target.
type Source interface {
	// Check validates the target's options and the environment and, with read set, the files. It
	// must not access the network or start anything. It must be safe for concurrent use at any
	// time. Problems that only a server knows are failures instead (Receiver.Fail, Mistake).
	// understudy.NewClient calls Check(false), and understudy.Validate calls Check(true).
	Check(read bool) error
	// Start starts to look for endpoints for one channel, and returns at once. It may call r from
	// inside, which takes effect once all sources of the channel have been started. It returns an
	// error only for a problem that Check(false) finds. This is a failure of this mechanism alone:
	// Start is not called again until the channel has been idle, and the other mechanisms continue.
	// Nothing is closed after a failed Start.
	//
	// The same Source is started once for each channel that uses it, from any goroutine and
	// concurrently, and again after Close when an idle channel is used again.
	Start(r *Receiver) (Started, error)
}

// Started is a running source of one channel: the requests that it accepts. Fields are nil for
// requests that it does not accept.
type Started struct {
	// Close stops the source. It is called once, from any goroutine, maybe from inside a method of
	// the Receiver. It must not wait for such a method to return, because the method may be on its
	// stack. So it may return before the source's goroutines end. Their later results have no
	// effect.
	Close func()
	// ResolveNow asks the source to look again after a connection to one of its endpoints failed.
	// It is nil for a source that pushes changes, for which such requests are ignored
	// (ignore_reresolution_requests of gRFC A37 and A56). It may be called from any goroutine until
	// Close, but calls do not overlap. It should return at once.
	ResolveNow func()
	// EndpointsFailed reports that a connection to one of its endpoints failed, to a source that
	// pushes changes: its server may be unreachable. It is called like ResolveNow, for any number
	// of failures.
	EndpointsFailed func()
	// Confirmed returns when the last answer was last confirmed. It is for a source that may have
	// lost its server without noticing. It is called shortly before Close, for each channel that
	// shares the source. If it is nil, the answer counts as confirmed until Close or the source's
	// failure.
	Confirmed func() time.Time
}

// Mechanism is one discovery mechanism of a target (gRFC A37): one source whose endpoints make one
// or more priorities.
type Mechanism struct {
	// Name is shown to people and must hold no secret. It must be valid UTF-8 and unique among the
	// mechanisms; it may be empty if there is only one. The endpoints of a named mechanism are
	// verified against its Authority, those of an unnamed one against the channel's.
	Name string
	// Source finds the mechanism's endpoints.
	Source Source
	// Authority is the authority that a channel with this mechanism alone would have,
	// percent-encoded if necessary. "" is gRPC's authority for the target. The first mechanism's is
	// the channel's.
	Authority string
	// TrustNames verifies an endpoint against the hostname in the Answer, if there is one, in place
	// of Authority. Whoever controls the source then controls the names, so set it only if the user
	// asks for it. The user's authority takes precedence.
	TrustNames bool
	// Prefer is the default for the preference of near endpoints if neither the target nor the
	// program sets it: "hints" for a source with hints that should be used, "" for none. It has no
	// effect, and causes no note, if the client's location is unknown.
	Prefer string
	// OutlierDetection is the configuration of understudy_outlier_detection for the mechanism: a
	// JSON object with the fields of gRFC A50 except childPolicy, "" for none. It applies only in a
	// list (Receiver.Parts), and only if the channel has no setting.
	OutlierDetection string

	// own is set if the target itself gives the mechanism its authority.
	own bool
}
