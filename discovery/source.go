// Package discovery is the contract of sources of endpoints. Package understudy, which a program
// imports as well, makes resolvers of them.
//
// A source finds endpoints. It knows nothing of policies, service configs or channels.
// It tells a Receiver what it finds, or why it finds nothing. The receiver does the
// rest: it joins sources in priority order, keeps the names of children and the last
// good answer, merges the user's service config, and tells the channel.
//
// The packages below this one are sources: file, eds, srv, failover. A source of your own
// is a function that reads a target and returns a Source, given to Register; the
// examples of this package are complete. There are three ways to make a Source. One that
// pushes implements the interface, Poll makes one that is polled, and FromResolver makes
// one of a gRPC resolver. Shared lets the channels of a process share one, Refreshed has one asked
// again, and package sourcetest holds one against this contract.
//
// An answer that holds no endpoint is a failure, unless its field Empty says that it is meant:
// the last one stays in use.
//
// docs/options.md lists the options of all sources, for programs and for targets.
package discovery

import "time"

// Source finds the endpoints of one target.
type Source interface {
	// Check reports what is wrong on this machine, in the target's options or the environment,
	// and in files where read is set. It asks nobody, starts nothing, and may be called at any
	// time, from several goroutines. What only a server knows is none of its business: that is a
	// failure (Receiver.Fail, Mistake). understudy.NewClient calls it with false, and
	// understudy.Validate with true.
	Check(read bool) error
	// Start begins to look for endpoints, for one channel, and returns at once. It may call r
	// from inside; that takes effect when all sources of the channel have been started. It
	// returns an error only for what Check(false) reports. That is then the failure of this
	// part, for which Start is not called again until the channel has been idle; the other
	// parts go on. Nothing is closed where Start failed.
	//
	// The same Source is started once for each channel that uses it, from any goroutine and while
	// others run, and again after Close, when an idle channel is used again.
	Start(r *Receiver) (Started, error)
}

// Started is a source at work for one channel: what can be asked of it. A field is nil where it
// cannot.
type Started struct {
	// Close ends the search. It is called once, from any goroutine, maybe from inside a call of
	// the Receiver. It should not wait for such a call to return: it may be on its stack. So it
	// may return before the goroutines of the source end. What they tell the receiver from then
	// on has no effect.
	Close func()
	// ResolveNow asks the source to look again, when a connection to one of its endpoints fails.
	// Where it is nil the source sends what is new unasked, and such requests go nowhere
	// (ignore_reresolution_requests of gRFC A37 and A56). It may be called from any goroutine, at
	// any time until Close, but never while another call of it runs. It should return at once.
	ResolveNow func()
	// EndpointsFailed notes that a connection to one of its endpoints fails, for a source that sends
	// what is new unasked: its server may be gone without a word. It is called as ResolveNow is, and
	// by any number of failures.
	EndpointsFailed func()
	// Confirmed returns until when the last answer was confirmed, where the source may have lost
	// its server without a word. It is called shortly before Close, and for each channel that
	// shares the source. Where it is nil, the last answer was confirmed until then, or else until
	// the source failed.
	Confirmed func() time.Time
}

// Mechanism is one part of a target, which becomes one discovery mechanism of the channel
// (gRFC A37): one source, whose endpoints make one or more priorities.
type Mechanism struct {
	// Name is what people call the part, so it must hold no secret. It must be valid UTF-8 and different from
	// those of the other parts; the only part of a target needs none. The endpoints of
	// a part with a name are verified against its Authority, those of one without
	// against the channel's.
	Name string
	// Source finds the part's endpoints.
	Source Source
	// Authority is the one that a channel to this part alone would have, percent-encoded
	// where need be. "" stands for what gRPC makes of the target. The first part's is the
	// channel's.
	Authority string
	// TrustNames verifies an endpoint against the hostname that the Answer gives it,
	// where it gives one, in place of Authority. Whoever can change what the source says
	// then chooses the names, so set it only where the user asks for it. An authority that
	// the user gives wins over it.
	TrustNames bool
	// Prefer is what is preferred of the part's endpoints where neither the target nor the program says
	// it: "hints" for a source whose hints were made to be used, "" for nothing. Where nobody says where
	// the client runs it has no effect, and nothing is said of that.
	Prefer string
	// OutlierDetection is the configuration of understudy_outlier_detection for the part, a JSON
	// object with the fields of gRFC A50 and without childPolicy, "" for none. It counts in a list
	// that a source gives (Receiver.Parts), where the channel has no setting of its own.
	OutlierDetection string

	// own is set where the target itself gives the part its authority.
	own bool
}
