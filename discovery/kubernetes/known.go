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

// This file decides which slices are in use. The code uses neither the network nor the clock.

const (
	removal   = 10 * time.Second // how long a deleted slice stays in use
	maxSlices = 10_000
	maxAll    = 200_000 // endpoints in all slices together; a cluster has at most 150,000 pods
)

// whyNone is the reason that errors give if the account must not get Services.
const whyNone = "there is no such Service, or it has the type ExternalName, or no selector"

// snapshot is an immutable copy of the known slices.
type snapshot struct {
	there map[string]*slice
	left  map[string]*slice
	notes []string
	wrong string // reason why one of the existing slices is not used
	why   string
}

// collection holds the existing slices. The numbers of slices and endpoints are limited.
type collection struct {
	slices    map[string]*slice
	wrong     map[string]string // notes about slices that are not used, or only in their last good form
	endpoints int
}

func newCollection() *collection {
	return &collection{slices: make(map[string]*slice), wrong: make(map[string]string)}
}

// put adds or replaces a slice. If there is a problem, or if the slice exceeds the limits, put adds
// a note instead, and the last good form of the slice stays in use. This is the one in c or, if
// there is none, last.
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

// noted returns the slice's key in collection.wrong. The name is shortened, because an invalid name
// may be megabytes long.
func noted(name string) string { return printable.Line(name, 300) }

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
	delete(c.wrong, noted(name))
	return sl
}

// known holds the existing and the recently deleted slices.
type known struct {
	*collection
	left     *collection
	until    map[string]time.Time // when each slice in left expires
	oddities map[string]bool      // notes about events without effect
	told     bool                 // all initial slices have arrived
}

func newKnown() *known {
	return &known{collection: newCollection(), left: newCollection(), until: make(map[string]time.Time), oddities: make(map[string]bool)}
}

// odd adds a note about an event without effect. It reports whether the note is new.
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

func (k *known) change(sl *slice, problem error) {
	k.put(sl, problem, nil)
	if k.slices[sl.Metadata.Name] != nil {
		k.forget(sl.Metadata.Name)
	}
}

// remove moves a slice to the recently deleted ones. If its Service has no existing slice left, all
// its deleted slices stay in use for the full time again.
func (k *known) remove(name string, now time.Time) {
	sl := k.collection.remove(name)
	k.leave(sl, now)
	if sl != nil {
		k.prolong(sl.Metadata.Labels[serviceLabel], now)
	}
}

// prolong starts the time in use of a Service's deleted slices again, unless the Service has an
// existing slice.
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

func (k *known) replace(all *collection, now time.Time) {
	lost := make(map[string]bool)
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

// leave keeps a deleted slice in use for the duration removal.
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

func (k *known) expire(now time.Time) {
	for name, at := range k.until {
		if !at.After(now) {
			k.forget(name)
		}
	}
}

// next returns the time at which the next deleted slice expires, or the zero time if there is none.
func (k *known) next() (at time.Time) {
	for _, until := range k.until {
		if at.IsZero() || until.Before(at) {
			at = until
		}
	}
	return at
}

func (k *known) snapshot() *snapshot {
	s := &snapshot{there: maps.Clone(k.slices), left: maps.Clone(k.left.slices), notes: slices.Sorted(maps.Values(k.wrong))}
	if len(s.notes) > 0 {
		s.wrong = s.notes[0]
	}
	s.notes = append(s.notes, slices.Sorted(maps.Keys(k.oddities))...)
	return s
}
