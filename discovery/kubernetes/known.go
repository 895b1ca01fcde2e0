package kubernetes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/understudy-lb/understudy/internal/printable"
)

// This file is a core: it decides which slices count, and knows no network and no clock.

const (
	removal   = 10 * time.Second // how long a deleted slice counts
	maxSlices = 10_000
	maxAll    = 200_000 // endpoints of all slices; a cluster has 150,000 pods
)

// whyNone is what rights on EndpointSlices alone can tell.
const whyNone = "there is no such Service, or it has the type ExternalName, or no selector"

// snapshot is what is known of the slices of Services at a time. Nobody changes it.
type snapshot struct {
	there map[string]*slice // by name
	left  map[string]*slice // deleted a moment ago
	notes []string
	wrong string // why one of those that there are does not count
	why   string // there is none, where that was found out
}

// collection is slices by name, within bounds.
type collection struct {
	slices    map[string]*slice
	wrong     map[string]string // why a slice does not count, or not as it is
	endpoints int
}

func newCollection() *collection {
	return &collection{slices: make(map[string]*slice), wrong: make(map[string]string)}
}

// put adds a slice, or takes it in place of the one of its name. What does not parse, or is beyond the
// bounds, is left out, and noted: the last good form of it, if there is one, goes on counting.
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
	case sl.long():
		problem = fmt.Errorf("it has a text of more than %d bytes", maxText)
	case before == nil && len(c.slices) >= maxSlices:
		problem = fmt.Errorf("there are more than %d slices", maxSlices)
	case c.endpoints+size > maxAll:
		problem = fmt.Errorf("there are more than %d endpoints", maxAll)
	}
	if problem == nil {
		c.add(name, sl)
		return
	}
	text := fmt.Sprintf("slice %s is left out: %v", printable.Quote(printable.Line(name, 100)), problem)
	if last != nil && name != "" && len(c.slices) < maxSlices && c.endpoints+len(last.Endpoints) <= maxAll {
		text = fmt.Sprintf("slice %s counts as it was before: %v", printable.Quote(printable.Line(name, 100)), problem)
		c.add(name, last)
	}
	if len(c.wrong) < maxNotes {
		c.wrong[noted(name)] = printable.Line(text, 300)
	}
}

// noted returns the name under which a slice is noted: one that is too long for a slice may be megabytes.
func noted(name string) string { return printable.Line(name, 300) }

// add keeps a copy of what counts of a slice, which may be a part of a large event.
func (c *collection) add(name string, sl *slice) {
	kept := *sl
	kept.Metadata.ResourceVersion, kept.Metadata.Annotations.Ended = "", ""
	c.slices[name] = &kept
	c.endpoints += len(sl.Endpoints)
}

// remove takes a slice out, and returns it, nil for none.
func (c *collection) remove(name string) *slice {
	sl := c.slices[name]
	if sl != nil {
		c.endpoints -= len(sl.Endpoints)
	}
	delete(c.slices, name)
	delete(c.wrong, noted(name))
	return sl
}

// known is what is known of the slices of Services.
type known struct {
	*collection
	left     *collection          // deleted a moment ago
	until    map[string]time.Time // when those in left go
	oddities map[string]bool      // what came that means nothing to us
	told     bool                 // all that there was has come once
}

func newKnown() *known {
	return &known{collection: newCollection(), left: newCollection(), until: make(map[string]time.Time), oddities: make(map[string]bool)}
}

// odd notes an event that means nothing to us, and reports whether it is the first of its kind.
func (k *known) odd(e *event) bool {
	text := "an event of the unknown type " + printable.Quote(printable.Line(e.Type, 40)) + " has no effect"
	if e.Type == "" && e.problem != nil {
		text = "an event has no effect: " + printable.Line(e.problem.Error(), 200)
	}
	if k.oddities[text] || len(k.oddities) >= maxNotes {
		return false
	}
	k.oddities[text] = true
	return true
}

// change takes a slice that was added or changed.
func (k *known) change(sl *slice, problem error) {
	k.put(sl, problem, nil)
	if k.slices[sl.Metadata.Name] != nil {
		k.forget(sl.Metadata.Name)
	}
}

// remove takes a slice that was deleted: it counts for a while. Where it was the last one of its
// Service, all that were deleted before it do.
func (k *known) remove(name string, now time.Time) {
	sl := k.collection.remove(name)
	k.leave(sl, now)
	if sl != nil {
		k.prolong(sl.Metadata.Labels[serviceLabel], now)
	}
}

// prolong has all deleted slices of a Service that has lost one count for a while, where it has no other.
func (k *known) prolong(service string, now time.Time) {
	for _, other := range k.slices {
		if other.Metadata.Labels[serviceLabel] == service {
			return
		}
	}
	for name, other := range k.left.slices {
		if other.Metadata.Labels[serviceLabel] == service {
			k.until[name] = now.Add(removal)
		}
	}
}

// replace puts all there is in the place of what was known.
func (k *known) replace(all *collection, now time.Time) {
	lost := make(map[string]bool) // Services
	for name, sl := range k.slices {
		if all.slices[name] == nil {
			k.leave(sl, now)
			lost[sl.Metadata.Labels[serviceLabel]] = true
		}
	}
	for name := range all.slices {
		k.forget(name)
	}
	k.collection, k.told = all, true
	for service := range lost {
		k.prolong(service, now)
	}
}

// leave keeps a slice that was deleted for a while.
func (k *known) leave(sl *slice, now time.Time) {
	if sl == nil || !k.told {
		return
	}
	name := sl.Metadata.Name
	if k.left.put(sl, nil, nil); k.left.slices[name] != nil {
		k.until[name] = now.Add(removal)
	}
}

func (k *known) forget(name string) {
	k.left.remove(name)
	delete(k.until, name)
}

// expire forgets the deleted slices whose time is over.
func (k *known) expire(now time.Time) {
	for name, at := range k.until {
		if !at.After(now) {
			k.forget(name)
		}
	}
}

// next returns when the next of the deleted slices goes, zero for never.
func (k *known) next() (at time.Time) {
	for _, until := range k.until {
		if at.IsZero() || until.Before(at) {
			at = until
		}
	}
	return at
}

// snapshot returns what is known.
func (k *known) snapshot() *snapshot {
	s := &snapshot{there: maps.Clone(k.slices), left: maps.Clone(k.left.slices), notes: slices.Sorted(maps.Values(k.wrong))}
	if len(s.notes) > 0 {
		s.wrong = s.notes[0]
	}
	s.notes = append(s.notes, slices.Sorted(maps.Keys(k.oddities))...)
	return s
}
