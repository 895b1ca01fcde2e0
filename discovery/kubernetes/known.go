package kubernetes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// This file decides which slices are in use. The code accesses neither the network nor the clock.

const (
	removalDelay      = 10 * time.Second // a deleted slice stays in use for this time
	maxSlices         = 10_000
	maxTotalEndpoints = 200_000 // in all slices together; a cluster has at most 150,000 pods
)

// defaultReason is the reason in errors if the account has no permission to get Services.
const defaultReason = "there is no such Service, or it has the type ExternalName, or no selector"

// snapshot is an immutable copy of the known slices.
type snapshot struct {
	existing map[string]*slice
	deleted  map[string]*slice
	notes    []string
	problem  string // why an existing slice is not used, or ""
	reason   string
}

// collection holds the existing slices. It limits the numbers of slices and endpoints.
type collection struct {
	slices    map[string]*slice
	problems  map[string]string // notes about invalid slices
	endpoints int
}

func newCollection() *collection {
	return &collection{slices: make(map[string]*slice), problems: make(map[string]string)}
}

// put adds or replaces a slice. If there is a problem, or if the slice exceeds a limit, put adds a
// note instead, and the last good form of the slice stays in use. The last good form is the slice
// in c or, if there is none, the parameter last.
func (c *collection) put(sl *slice, problem error, last *slice) {
	name := sl.Metadata.Name
	before := c.slices[name]
	last = cmp.Or(before, last)
	c.remove(name)
	size := len(sl.Endpoints)
	switch {
	case name == "":
		problem = cmp.Or(problem, errors.New("it has no name"))
	case problem != nil:
	case size > maxEndpoints || len(sl.Ports) > maxPorts:
		problem = fmt.Errorf("it has more than %d endpoints or %d ports", maxEndpoints, maxPorts)
	case sl.hasLongText():
		problem = fmt.Errorf("it has a string of more than %d bytes", maxText)
	case before == nil && len(c.slices) >= maxSlices:
		problem = fmt.Errorf("there are more than %d slices", maxSlices)
	case c.endpoints+size > maxTotalEndpoints:
		problem = fmt.Errorf("there are more than %d endpoints", maxTotalEndpoints)
	}
	if problem == nil {
		c.add(name, sl)
		return
	}
	text := fmt.Sprintf("slice %s is ignored: %v", printable.Quote(printable.Line(name, 100)), problem)
	if last != nil && name != "" && len(c.slices) < maxSlices && c.endpoints+len(last.Endpoints) <= maxTotalEndpoints {
		text = fmt.Sprintf("slice %s is used in its previous version: %v", printable.Quote(printable.Line(name, 100)), problem)
		c.add(name, last)
	}
	if len(c.problems) < maxNotes {
		c.problems[noteKey(name)] = printable.Line(text, 300)
	}
}

// noteKey returns the slice's key in collection.problems. It shortens the name, because an invalid
// name may be megabytes long.
func noteKey(name string) string { return printable.Line(name, 300) }

func (c *collection) add(name string, sl *slice) {
	kept := *sl
	kept.Metadata.ResourceVersion, kept.Metadata.Annotations.Ended = "", ""
	c.slices[name] = &kept
	c.endpoints += len(sl.Endpoints)
}

func (c *collection) remove(name string) *slice {
	sl := c.slices[name]
	if sl != nil {
		c.endpoints -= len(sl.Endpoints)
	}
	delete(c.slices, name)
	delete(c.problems, noteKey(name))
	return sl
}

// knownSlices holds the existing and the recently deleted slices.
type knownSlices struct {
	*collection
	deleted    *collection
	expiry     map[string]time.Time // for each deleted slice
	eventNotes map[string]bool      // notes about events without effect
	isComplete bool                 // whether all initial slices have arrived
}

func newKnownSlices() *knownSlices {
	return &knownSlices{collection: newCollection(), deleted: newCollection(), expiry: make(map[string]time.Time), eventNotes: make(map[string]bool)}
}

// noteEvent adds a note about an event without effect. It reports whether the note is new.
func (k *knownSlices) noteEvent(e *event) bool {
	text := "an event of the unknown type " + printable.Quote(printable.Line(e.Type, 40)) + " has no effect"
	if e.Type == "" && e.problem != nil {
		text = "an event has no effect: " + printable.Line(e.problem.Error(), 200)
	}
	if k.eventNotes[text] || len(k.eventNotes) >= maxNotes {
		return false
	}
	k.eventNotes[text] = true
	return true
}

func (k *knownSlices) update(sl *slice, problem error) {
	k.put(sl, problem, nil)
	if k.slices[sl.Metadata.Name] != nil {
		k.drop(sl.Metadata.Name)
	}
}

// remove moves a slice to the recently deleted slices. If its Service has no existing slice left,
// all deleted slices of the Service stay in use for the full removalDelay again.
func (k *knownSlices) remove(name string, now time.Time) {
	sl := k.collection.remove(name)
	k.keepDeleted(sl, now)
	if sl != nil {
		k.restartExpiry(sl.Metadata.Labels[serviceLabel], now)
	}
}

// restartExpiry makes all deleted slices of a Service stay in use for the full removalDelay again,
// unless the Service has an existing slice.
func (k *knownSlices) restartExpiry(service string, now time.Time) {
	for _, other := range k.slices {
		if other.Metadata.Labels[serviceLabel] == service {
			return
		}
	}
	for name, other := range k.deleted.slices {
		if other.Metadata.Labels[serviceLabel] == service {
			k.expiry[name] = now.Add(removalDelay)
		}
	}
}

func (k *knownSlices) replace(all *collection, now time.Time) {
	changedServices := make(map[string]bool)
	for name, sl := range k.slices {
		if all.slices[name] == nil {
			k.keepDeleted(sl, now)
			changedServices[sl.Metadata.Labels[serviceLabel]] = true
		}
	}
	for name := range all.slices {
		k.drop(name)
	}
	k.collection, k.isComplete = all, true
	for service := range changedServices {
		k.restartExpiry(service, now)
	}
}

// keepDeleted keeps a deleted slice in use for the duration removalDelay.
func (k *knownSlices) keepDeleted(sl *slice, now time.Time) {
	if sl == nil || !k.isComplete {
		return
	}
	name := sl.Metadata.Name
	if k.deleted.put(sl, nil, nil); k.deleted.slices[name] != nil {
		k.expiry[name] = now.Add(removalDelay)
	}
}

func (k *knownSlices) drop(name string) {
	k.deleted.remove(name)
	delete(k.expiry, name)
}

func (k *knownSlices) expire(now time.Time) {
	for name, at := range k.expiry {
		if !at.After(now) {
			k.drop(name)
		}
	}
}

// nextExpiry returns the time at which the next deleted slice expires, or the zero time if there is
// none.
func (k *knownSlices) nextExpiry() (at time.Time) {
	for _, expiry := range k.expiry {
		if at.IsZero() || expiry.Before(at) {
			at = expiry
		}
	}
	return at
}

func (k *knownSlices) snapshot() *snapshot {
	s := &snapshot{existing: maps.Clone(k.slices), deleted: maps.Clone(k.deleted.slices), notes: slices.Sorted(maps.Values(k.problems))}
	if len(s.notes) > 0 {
		s.problem = s.notes[0]
	}
	s.notes = append(s.notes, slices.Sorted(maps.Keys(k.eventNotes))...)
	return s
}
