package feed

import (
	"errors"
	"fmt"
	"slices"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/topology"
)

var (
	errNoAddresses = errors.New("its resolver answered without addresses")
	errEmpty       = errors.New("its answer holds no endpoint, and does not say that this is meant (Answer.Empty)")
)

// Inlet takes what one source finds. Its methods are safe for concurrent use, and may
// be called from anywhere. After Close they do nothing.
type Inlet struct {
	feed *Feed
	slot *slot
}

// Update takes an answer in place of the one before. An answer that changes nothing
// costs little, and goes no further. Update returns an error where the source should
// look again: the answer breaks the rules or is empty, or the channel did not take it
// and no other mechanism explains that.
func (in *Inlet) Update(a topology.Answer) error {
	if err := checkSome(a); err != nil {
		in.failed(err, wasRefused)
		return err
	}
	s := in.named(sayingOf(a))
	if in.feed.repeats(in, s) {
		return nil
	}
	tree, err := in.take(a, s.clone(), trouble{})
	if err != nil {
		if invalid, ok := errors.AsType[*topology.Invalid](err); ok && a.Explain != nil {
			err = a.Explain(invalid)
		}
		in.failed(err, wasRefused)
		return err
	}
	in.feed.count(in.slot, accepted)
	in.feed.note(in.slot, notesOf(a, tree))
	return in.feed.publish(in.slot)
}

// checkSome returns an error where an answer holds no endpoint and does not say that this is
// meant. It seldom is: gRPC's DNS resolver gives such an answer for a name that does not exist,
// maybe just for a moment.
func checkSome(a topology.Answer) error {
	switch {
	case a.Empty:
		return nil
	case a.Cluster == nil:
		if !slices.ContainsFunc(a.Endpoints, func(e resolver.Endpoint) bool { return len(e.Addresses) > 0 }) {
			return errNoAddresses
		}
	case !slices.ContainsFunc(a.Cluster.GetEndpoints(), func(l *endpointv3.LocalityLbEndpoints) bool { return len(l.GetLbEndpoints()) > 0 }):
		return errEmpty
	}
	return nil
}

// Fail takes the reason why the source has no answer now. Its last answer stays in use.
// If it never answered, the answer from before the channel was idle is used.
func (in *Inlet) Fail(err error) { in.failed(err, resultOf(err)) }

func (in *Inlet) failed(err error, r result) {
	in.feed.count(in.slot, r)
	if !in.recall(err) {
		in.feed.fail(in, errors.New(in.feed.textOf(err)))
	}
	_ = in.feed.publish(nil) // the source knows that it failed, and tries again anyway
}

// Rejected takes note of an update that the source refused, for metrics and for those who
// look: its last answer stays as good as it was. The source has logged that.
func (in *Inlet) Rejected(err error) {
	in.feed.count(in.slot, wasRefused)
	text := in.feed.textOf(err)
	in.feed.mu.Lock()
	defer in.feed.mu.Unlock()
	in.slot.wrong(text)
}

// take makes a tree of an answer and notes it. A complaint says why the answer is an
// old one, which takes the place of none. Sources are closed without the lock on names: one that is replaced shares them
// with its successor, and its Close may wait for an answer that waits for the lock.
func (in *Inlet) take(a topology.Answer, s said, complaint trouble) (topology.Tree, error) {
	in.slot.naming.mu.Lock()
	if complaint.text != "" && in.feed.hasAnswered(in.slot) {
		in.slot.naming.mu.Unlock()
		return topology.Tree{}, errAnswered
	}
	var retired []Watch
	tree, err := in.translate(a)
	if err == nil {
		retired, err = in.feed.answer(in, s, tree, complaint)
	}
	in.slot.naming.mu.Unlock()
	in.feed.retire(retired)
	return tree, err
}

// translate returns the tree over an answer. The server names are the mechanism's: a
// source does not choose the names on certificates, unless the user trusts it to.
func (in *Inlet) translate(a topology.Answer) (topology.Tree, error) {
	if a.Cluster == nil {
		return in.slot.plainTree(a.Endpoints...), nil
	}
	tree, err := in.slot.naming.translator.Translate(a.Cluster)
	if name := in.slot.ServerName; name != "" {
		for _, endpoint := range tree.Endpoints {
			for i := range endpoint.Addresses {
				if endpoint.Addresses[i].ServerName == "" {
					endpoint.Addresses[i].ServerName = name
				}
			}
		}
	}
	return tree, err
}

// plainTree returns the tree of the mechanism over plain endpoints, of which there may
// be none. Those without an address are left out.
func (s *slot) plainTree(given ...resolver.Endpoint) topology.Tree {
	part := topology.Part{Name: s.plain}
	if part.Name == "" {
		part.Name = "endpoints"
	}
	for _, endpoint := range given {
		if len(endpoint.Addresses) == 0 {
			continue
		}
		endpoint.Addresses = append([]resolver.Address(nil), endpoint.Addresses...)
		for j := range endpoint.Addresses {
			endpoint.Addresses[j].ServerName = s.ServerName
		}
		part.Endpoints = append(part.Endpoints, endpoint)
	}
	return topology.Targets([]topology.Part{part})
}

// notesOf returns the notes on an answer for the log, in one line.
func notesOf(a topology.Answer, tree topology.Tree) string {
	if len(tree.Notes) == 0 {
		return ""
	}
	notes := &topology.Invalid{Problems: tree.Notes}
	if a.Explain != nil {
		return a.Explain(notes).Error()
	}
	return notes.Error()
}

// repeats returns whether said is what the source said last, the channel has it, and
// nothing has gone wrong since; or whether it does not matter any more.
func (f *Feed) repeats(in *Inlet, said said) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := in.slot
	if f.closed || s.gone {
		return true
	}
	if s.phase != answered || s.inherited || f.refused || len(s.parts.all()) > 0 || !s.said.equal(said) {
		return false
	}
	s.said.version, s.said.names = said.version, said.names
	f.over(s, &s.complaint)
	s.confirmed()
	kept.renew(s.Key, s.said, time.Now())
	return true
}

// hasAnswered returns whether s has an answer.
func (f *Feed) hasAnswered(s *slot) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.phase == answered
}

// answer notes that a source has said what makes tree. It returns watches to be closed.
func (f *Feed) answer(in *Inlet, said said, tree topology.Tree, complaint trouble) ([]Watch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := in.slot
	if f.closed || s.gone {
		return nil, nil
	}
	if complaint.text != "" && s.phase == answered { // a list of parts came meanwhile
		return nil, errAnswered
	}
	s.said, s.tree = said, tree
	s.phase, s.inherited = answered, false
	f.heard(s, said, complaint)
	retired := f.whole(s)
	f.touch(s)
	return append(retired, f.turn()...), nil
}

// heard notes that the source of s says something. What it complains of confirms nothing, and
// is not kept. The lock is held.
func (f *Feed) heard(s *slot, said said, complaint trouble) {
	s.err = nil
	if complaint.text != "" {
		s.complaint = complaint
		return
	}
	f.over(s, &s.complaint)
	s.confirmed()
	kept.put(s.Key, said, time.Now())
}

// note logs what has no effect in the answer of a source, when it changes.
func (f *Feed) note(s *slot, notes string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if notes != s.noted && notes != "" {
		logger.Warning(f.line(s, notes))
	}
	s.noted = notes
}

// fail notes that a source failed with err.
func (f *Feed) fail(in *Inlet, err error) {
	f.mu.Lock()
	s := in.slot
	if f.closed || s.gone {
		f.mu.Unlock()
		return
	}
	if s.phase == answered {
		if s.holds() && !s.inherited {
			kept.confirm(s.Key, time.Now())
		}
		f.complain(s, err.Error(), staysInUse)
		s.inherited = false
		retired := f.turn()
		f.mu.Unlock()
		f.retire(retired)
		return
	}
	if f.complain(s, err.Error(), "") {
		f.touch(s) // calls see the error
	}
	s.phase, s.inherited = failed, false
	s.err = err
	s.tree = s.plainTree()
	retired := f.turn()
	f.mu.Unlock()
	f.retire(retired)
}

// recall answers for a source that failed with err before it ever answered. It uses the
// answer kept from before the channel was idle. It returns false where none is kept.
func (in *Inlet) recall(err error) bool {
	in.feed.mu.Lock()
	never := in.slot.phase != answered && !in.feed.closed
	in.feed.mu.Unlock()
	if !never {
		return false
	}
	s, age, ok := kept.get(in.slot.Key, time.Now())
	if !ok {
		return false
	}
	text := in.feed.textOf(err)
	now := time.Now()
	complaint := trouble{text, now, now.Add(-age)}
	if s.parts != nil {
		if !in.split(s.parts, complaint) {
			return false
		}
	} else if _, err := in.take(s.answer(), s, complaint); err != nil {
		return false
	}
	line := in.feed.line(in.slot, fmt.Sprintf("%s; the endpoints that were confirmed %v ago are used", text, age.Round(time.Second)))
	logger.Warning(line)
	in.feed.live.Note(line)
	return true
}
