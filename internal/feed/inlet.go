package feed

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/topology"
)

var errNoAddresses = errors.New("its resolver answered without addresses")

// word is the last word of a source.
type word struct {
	said      said          // its last answer
	tree      topology.Tree // over that answer; without endpoints while there is none
	err       error         // why there is none
	complaint string        // what is wrong now, "" if nothing
	noted     string        // what the log said about the answer last
	told      bool          // it knows that the channel did not like an update
	ask       bool          // it is to be asked to look again
}

// Inlet takes what one source finds out. Its methods are safe for concurrent use and
// may be called from anywhere, also after Close, when they do nothing.
type Inlet struct {
	feed  *Feed
	index int // of the mechanism

	mu         sync.Mutex // one answer at a time becomes a tree
	translator topology.Translator
}

// Update takes an answer in place of the one before. One that changes nothing costs
// little, and goes no further. It returns an error where the source should look again:
// the answer breaks the rules or is empty, or the channel did not take it and no other
// mechanism explains that.
func (in *Inlet) Update(a topology.Answer) error {
	if a.Cluster == nil && !anyAddress(a.Endpoints) {
		in.Fail(errNoAddresses)
		return errNoAddresses
	}
	s := sayingOf(a)
	if in.feed.repeats(in.index, s) {
		return nil
	}
	tree, err := in.take(a, s.clone(), "")
	if err != nil {
		if invalid, ok := errors.AsType[*topology.Invalid](err); ok && a.Explain != nil {
			err = a.Explain(invalid)
		}
		in.Fail(err)
		return err
	}
	in.feed.note(in.index, notesOf(a, tree))
	return in.feed.publish(in.index)
}

// anyAddress returns whether there is an address at all. That there is none is seldom
// meant: gRPC's DNS resolver says so of a name that does not exist, or not for a moment.
func anyAddress(endpoints []resolver.Endpoint) bool {
	return slices.ContainsFunc(endpoints, func(e resolver.Endpoint) bool { return len(e.Addresses) > 0 })
}

// Fail takes the reason why the source has no answer now. What it answered before
// stays in use; where it never did, what is kept from before the channel was idle is
// used.
func (in *Inlet) Fail(err error) {
	if !in.recall(err) {
		in.feed.fail(in.index, stable(err))
	}
	_ = in.feed.publish(nobody) // the source knows that it failed, and tries again anyway
}

// take makes a tree of an answer and notes it. A complaint means that it is not what
// the source says now.
func (in *Inlet) take(a topology.Answer, s said, complaint string) (topology.Tree, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	tree, err := in.translate(a)
	if err == nil {
		in.feed.answer(in.index, s, tree, complaint)
	}
	return tree, err
}

// translate returns the tree over an answer. Whose name is on the certificates is
// never for the source to say, unless the user trusts it, so the server names are those of
// the mechanism.
func (in *Inlet) translate(a topology.Answer) (topology.Tree, error) {
	if a.Cluster == nil {
		return in.feed.plainTree(in.index, a.Endpoints...), nil
	}
	tree, err := in.translator.Translate(a.Cluster)
	if name := in.feed.config.Mechanisms[in.index].ServerName; name != "" {
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

// plainTree returns the tree of mechanism i over plain endpoints, of which there may
// be none. Those without an address are left out.
func (f *Feed) plainTree(i int, given ...resolver.Endpoint) topology.Tree {
	m := f.config.Mechanisms[i]
	part := topology.Part{Name: m.Name}
	if part.Name == "" {
		part.Name = "endpoints"
	}
	for _, endpoint := range given {
		if len(endpoint.Addresses) == 0 {
			continue
		}
		endpoint.Addresses = append([]resolver.Address(nil), endpoint.Addresses...)
		for j := range endpoint.Addresses {
			endpoint.Addresses[j].ServerName = m.ServerName
		}
		part.Endpoints = append(part.Endpoints, endpoint)
	}
	return topology.Targets([]topology.Part{part})
}

// notesOf returns what the log is to say about an answer, in one line.
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

// repeats returns whether s is what mechanism i said last, the channel has it, and
// nothing has gone wrong since.
func (f *Feed) repeats(i int, s said) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return true
	}
	w := &f.words[i]
	if f.progress.phases[i] != answered || f.refused || !w.said.equal(s) {
		return false
	}
	w.complaint = ""
	kept.confirm(f.config.Mechanisms[i].Key, time.Now())
	return true
}

// answer notes that mechanism i has said s, which makes tree.
func (f *Feed) answer(i int, s said, tree topology.Tree, complaint string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	w := &f.words[i]
	f.changed = true
	w.said, w.tree = s, tree
	f.progress.phases[i] = answered
	w.err = nil
	if complaint != "" {
		w.complaint = complaint
		return
	}
	w.complaint = ""
	kept.put(f.config.Mechanisms[i].Key, s, time.Now())
}

// note logs what has no effect in the answer of mechanism i, when it changes.
func (f *Feed) note(i int, notes string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &f.words[i]
	if notes != w.noted && notes != "" {
		logger.Warning(f.line(i, notes))
	}
	w.noted = notes
}

// fail notes that source i failed with err.
func (f *Feed) fail(i int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	w := &f.words[i]
	if f.progress.phases[i] == answered {
		if f.holds(i) {
			kept.confirm(f.config.Mechanisms[i].Key, time.Now())
		}
		f.complain(i, err.Error(), "; the endpoints from before stay in use")
		return
	}
	if f.complain(i, err.Error(), "") {
		f.changed = true // calls see the error
	}
	f.progress.phases[i] = failed
	w.err = err
	w.tree = f.plainTree(i)
}

// complain logs what is wrong with source i, unless it did so last. It returns whether
// that is news. The lock is held.
func (f *Feed) complain(i int, text, consequence string) bool {
	w := &f.words[i]
	if w.complaint == text {
		return false
	}
	w.complaint = text
	logger.Warning(f.line(i, text) + consequence)
	return true
}

// holds returns whether source i holds to its last answer. The lock is held.
func (f *Feed) holds(i int) bool {
	return f.progress.phases[i] == answered && f.words[i].complaint == ""
}

// recall answers for a source that failed with err before it ever answered, with what
// is kept of an earlier channel to the same target. It returns false where nothing is.
func (in *Inlet) recall(err error) bool {
	in.feed.mu.Lock()
	never := in.feed.progress.phases[in.index] != answered && !in.feed.closed
	in.feed.mu.Unlock()
	if !never {
		return false
	}
	s, age, ok := kept.get(in.feed.config.Mechanisms[in.index].Key, time.Now())
	if !ok {
		return false
	}
	text := strings.TrimSpace(err.Error())
	if _, err := in.take(s.answer(), s, text); err != nil {
		return false
	}
	logger.Warning(in.feed.line(in.index, fmt.Sprintf("%s; the endpoints that were confirmed %v ago are used", text, age.Round(time.Second))))
	return true
}
