// Package discovery defines sources of endpoints, and makes resolvers of them.
//
// A source finds endpoints. It knows nothing of policies, service configs or channels.
// It tells a Receiver what it finds, or why it finds nothing. The receiver does the
// rest: it joins sources in priority order, keeps the names of children and the last
// good answer, merges the user's service config, and tells the channel.
//
// The packages below this one are sources: file, eds, srv, failover. A source of your own
// is a function that reads a target and returns a Source, given to NewBuilder; the
// example of this package is complete. There are three ways to make a Source. One that
// pushes implements the interface, Poll makes one that is polled, and FromResolver makes
// one of a gRPC resolver.
//
// An answer that holds no endpoint is a failure, unless its field Empty says that it is meant:
// the last one stays in use.
//
// docs/options.md lists the options of all sources, for programs and for targets.
package discovery

import "github.com/understudy-lb/understudy/topology"

// Answer is what a source has found: a cluster, which is a list of priorities, or plain
// endpoints.
type Answer = topology.Answer

// Source finds the endpoints of one target for one channel.
type Source interface {
	// Start begins to look for endpoints, and returns at once. It may call r from
	// inside; that takes effect when all sources of the channel have been started. An
	// error means a mistake in the target or an option. It is the failure of this part, for
	// which Start is not called again until the channel has been idle; the other parts go on.
	// A problem that may pass goes to r.Fail.
	//
	// The same Source is started again, after Watch.Close, when an idle channel is used
	// again.
	Start(r Receiver) (Watch, error)
}

// Watch is a source that was started. It may also have the method
//
//	ResolveNow()
//
// which asks it to look again when a connection to one of its endpoints fails. A source
// without the method sends what is new unasked, so such requests go nowhere
// (ignore_reresolution_requests of gRFC A37 and A56). ResolveNow may be called from any
// goroutine, at any time until Close, but never while another call of it runs.
//
// Where a channel was idle and is used again, its source's last answer is used when it fails,
// or has said nothing for two seconds, until it answers.
//
// A source's last answer counts as confirmed until the source fails or is closed. A
// source that stays silent when it has lost its server may say until when its last
// answer was confirmed. It is asked shortly before Close, by the method
//
//	Confirmed() time.Time
type Watch interface {
	// Close ends the search. It is called once, from any goroutine, maybe from inside a
	// call of the Receiver. It should not wait for such a call to return: it may be on
	// its stack.
	Close()
}

// Receiver takes what one source finds. Its methods are safe for concurrent use, and
// hold no lock while they call the channel. They may take as long as the channel takes;
// a source that must go on meanwhile calls from a goroutine of its own. What comes
// while the channel takes an answer becomes one update, and its callers do not wait.
// The methods never call the source on the caller's stack, except for Answer.Explain.
// After Watch.Close they do nothing.
type Receiver interface {
	// Update takes an answer, which replaces the one before. Repeating an answer costs
	// little, and confirms it. Update returns an error where the source should look
	// again soon: the answer breaks the rules, or holds no endpoint and does not say by
	// Answer.Empty that this is meant, which are failures; or the channel does not take it.
	Update(Answer) error
	// Fail takes the reason why there is no answer now, or why the last one cannot be
	// confirmed. The last answer stays in use; calls see the reason only where there is
	// none. The log has it once until its text changes. Only the text is passed on: a
	// status would end calls that wait for ready.
	Fail(error)
	// Parts takes a list of parts, at least one, in place of an answer: the source has
	// found out that its endpoints come from elsewhere, all priorities of the first part,
	// then those of the second, and so on. The source goes on, and may give another list
	// or an answer at any time. Each part has a name, its own errors, and its own last
	// answer, which a part of the same name in a later list inherits; where the Source is
	// the same one (==), it is not even started again. Its endpoints are verified as
	// those of the whole: Authority and TrustNames do not count. A part has no parts itself:
	// its source's list is taken for a failure.
	//
	// What is in use stays in use until a part of the new list has answered, and the others
	// have answered or failed, or the failover time is over.
	Parts([]Part)
}

// Part is one part of a target, which becomes one discovery mechanism of the channel
// (gRFC A37): one source, whose endpoints make one or more priorities.
type Part struct {
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
	// TrustNames verifies an endpoint against the hostname that the Cluster gives it,
	// where it gives one, in place of Authority. Whoever can change what the source says
	// then chooses the names, so set it only where the user asks for it. An authority that
	// the user gives wins over it.
	TrustNames bool
	// OutlierDetection is what the part's cluster says of it (gRFC A50), nil for nothing.
	// The channel's own setting goes before it.
	OutlierDetection *topology.OutlierDetection

	// own is set where the target itself gives the part its authority.
	own bool
}
