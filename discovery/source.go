// Package discovery says what a source of endpoints is, and makes a resolver of one.
//
// A source finds out endpoints and knows nothing of policies, service configs or
// channels. It tells a Receiver what it finds, or why it finds nothing; the receiver
// does the rest: it joins sources in priority order, keeps the names of children and
// the last good answer, merges the user's service config, and tells the channel.
//
// The packages below this one are sources: file, eds, srv, failover. One of your own is a
// function that reads a target and returns a Source, given to NewBuilder; the example
// of this package is complete. Three kinds fit: one that pushes implements Source, one
// that is polled is made by Poll, and one that wraps a resolver of gRPC's is made by
// FromResolver.
//
// Options of all sources, those of a program and those in a target, are listed in
// docs/options.md.
package discovery

import "github.com/understudy-lb/understudy/topology"

// Answer is what a source has found out: a cluster, which is a list of priorities, or
// plain endpoints.
type Answer = topology.Answer

// Source finds out the endpoints of one target for one channel.
type Source interface {
	// Start begins to look for endpoints, and returns at once. It may call r from
	// inside, which then takes effect when all sources of the channel are started. An
	// error is a mistake in the target or an option, which fails each call until the
	// channel is closed: what may pass is told to r.
	//
	// The same Source is started again, after Watch.Close, when a channel was idle
	// and is used again.
	Start(r Receiver) (Watch, error)
}

// Watch is a source at work. One that also has the method
//
//	ResolveNow()
//
// is asked by it to look again when a connection to one of its endpoints fails; one
// without sends what is new unasked, so such requests go nowhere
// (ignore_reresolution_requests of gRFC A37 and A56). ResolveNow may be called from any
// goroutine, at any time until Close, though never while another call of it runs.
//
// A source is taken to hold to its last answer until it fails or is closed. One that goes
// on without a word when it has lost its server says until when, shortly before Close, by
// the method
//
//	Confirmed() time.Time
type Watch interface {
	// Close ends the search. It is called once, from any goroutine, also from inside
	// a call of the Receiver. It should not wait for one: a source that is in the
	// middle of Update may find itself on the stack that closes it.
	Close()
}

// Receiver takes what one source finds out. Its methods are safe for concurrent use,
// may be called from any goroutine, and hold no lock while they call the channel.
// They may take as long as the channel takes; a source that must go on meanwhile calls
// from a goroutine of its own. What comes while the channel takes an answer becomes
// one update, and its callers do not wait. They never call the source on the caller's
// stack, but for Answer.Explain. After Watch.Close they do nothing.
type Receiver interface {
	// Update takes an answer in place of the one before. To repeat the answer costs
	// little, and says that it still holds. It returns an error where the source
	// should look again soon: the answer breaks the rules, which counts as a failure;
	// it is empty; or the channel does not take it.
	Update(Answer) error
	// Fail takes the reason why there is no answer now, or the last one cannot be
	// confirmed. The last answer stays in use; calls see the reason only where there
	// is none. It is logged once for each different text. What it wraps is not passed
	// on: a status would end calls that wait for ready.
	Fail(error)
	// Parts takes a list of parts, at least one, in place of an answer: the source has
	// found out that its endpoints come from elsewhere, all priorities of the first part,
	// then those of the second, and so on. The source goes on, and may give another list
	// or an answer at any time. Each part has a name, its own errors, and its own last
	// answer, which a part of the same name in a later list inherits; where the Source is
	// the same one (==), it is not even started again. Its endpoints are verified as
	// those of the whole: Authority and TrustNames do not count.
	//
	// What is in use stays in use until a part of the new list has answered, and the others
	// have answered or failed, or the failover time is over.
	Parts([]Part)
}

// Part is one entry in the list of where a target's endpoints come from.
type Part struct {
	// Name is what people call the part. It must be valid UTF-8 and different from
	// those of the other parts; the only part of a target needs none. Where there
	// is one, the part's endpoints are verified against Authority each.
	Name string
	// Source finds out the endpoints.
	Source Source
	// Authority is that of a channel to this part alone, percent-encoded where
	// need be; "" means what gRPC makes of the target. The first part's is the channel's.
	Authority string
	// TrustNames verifies each endpoint against the hostname that a Cluster gives it, where
	// it gives one, in place of Authority. Whoever can change what the source says then
	// chooses the names, so it is for the user to ask for.
	TrustNames bool

	// own says that whoever wrote the target gave the part its authority.
	own bool
}
