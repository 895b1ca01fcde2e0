// Package discovery defines the interface between Understudy and sources of endpoints. Programs
// that use a source also import package understudy, which builds resolvers from sources.
//
// A source finds the endpoints of a target and sends them, or an error, to a Receiver. It has no
// access to policies, service configs or the channel. All of that is taken care of behind the
// Receiver, where we join the answers of all sources in priority order, give child policies stable
// names, cache the last good answer, merge in the user's service config, and update the channel.
//
// The packages below this one have sources, such as file, eds, srv and failover. To add your own,
// call Register with a function that parses a target and returns a Source. You can find complete
// sources in the package's examples. There are three ways to create one:
//
//   - Implement the interface, for a source that pushes its answers.
//   - Call Poll, for a source that is polled.
//   - Call FromResolver, to wrap a gRPC resolver.
//
// Shared lets the channels of a process share a source, Refreshed re-resolves a source at an
// interval, and package sourcetest tests a source against the rules of this package.
//
// Note that an answer without endpoints counts as a failure, so the last good answer stays in use,
// unless Answer.Empty is set.
//
// See docs/options.md for the options of all sources, for programs and for targets.
package discovery

import "time"

// Source finds the endpoints of one target.
type Source interface {
	// Check returns an error if the target's options or the environment are invalid. If read is
	// set, it also reads the files that the source uses, and checks what's in them. It must not
	// open connections or start anything. If only a server can detect an error, use Receiver.Fail
	// instead. Check may be called at any time, from several goroutines. understudy.NewClient calls
	// Check(false), and understudy.Validate calls Check(true).
	Check(read bool) error
	// Start starts looking for endpoints for one channel, and returns without waiting for them. It
	// may call r before it returns, but those calls only take effect once all sources of the
	// channel have been started. It may only return an error if Check(false) would return one too.
	// The mechanism then counts as failed, and its source isn't started again until the channel
	// leaves idle mode. Other mechanisms aren't affected. Close isn't called if Start failed.
	//
	// The same Source is started once for each channel that uses it, from any goroutine and
	// possibly concurrently. It's started again after Close when an idle channel is used again.
	Start(r *Receiver) (Started, error)
}

// Started has the functions that control a started source. If one is nil, the source doesn't
// support it.
type Started struct {
	// Close stops the source. It's called once, from any goroutine, possibly from inside a call to
	// the Receiver, so it must not wait for such a call to return. The source's goroutines may go
	// on for a while after Close returns, since we ignore anything that they still send to the
	// receiver.
	Close func()
	// ResolveNow requests a re-resolution after a connection to one of the endpoints has failed.
	// Leave it nil if the source sends changes on its own (ignore_reresolution_requests of gRFC A37
	// and A56). It may be called from any goroutine until Close, but calls don't overlap. It should
	// return without blocking.
	ResolveNow func()
	// EndpointsFailed reports that connections to some endpoints fail. It's meant for sources that
	// send changes on their own, because they may lose their server without seeing an error. It's
	// called in the same way as ResolveNow, and one call may be about any number of failures.
	EndpointsFailed func()
	// Confirmed returns the time until which the last answer is known to be current. Set it if the
	// source may lose its server without noticing. It's called shortly before Close, once for each
	// channel that shares the source. If it's nil, the last answer counts as current until Close,
	// or until the source fails.
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
	// It must be valid UTF-8 and unique in the target, but may be empty if there's only one
	// mechanism. If the mechanism has a name, we verify the certificates of its endpoints against
	// Authority. If it doesn't, we use the channel's authority.
	Name string
	// Source finds the mechanism's endpoints.
	Source Source
	// Authority is the authority that a channel to just this mechanism would have, percent-encoded.
	// If it's "", we use the one that gRPC derives from the target. The first mechanism's authority
	// is also that of the channel.
	Authority string
	// TrustNames means that an endpoint's certificate is verified against the Hostname in the
	// answer, if it has one, instead of Authority. Only set it if the user asks for it, because
	// anyone who can change the source's answers then gets to choose the names. If the user sets an
	// authority, that takes precedence.
	TrustNames bool
	// Prefer is the default of the option "prefer" for the mechanism's endpoints. Use "hints" if
	// the source's hints are meant to be followed, or "" for no preference. If we don't know the
	// client's location, it has no effect, and nothing is logged.
	Prefer string
	// OutlierDetection is the configuration of understudy_outlier_detection for the mechanism. It's
	// a JSON object with the fields of gRFC A50 except childPolicy, or "" for none. We only use it
	// in a list that a source passes to Receiver.Mechanisms, and only if the channel doesn't
	// configure outlier detection itself.
	OutlierDetection string

	// authorityFromOption is set if Authority comes from an option of a nested target rather than
	// from the source. In that case, the channel's authority option doesn't replace it.
	authorityFromOption bool
}
