package kubernetes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// This file decides which slices are in use. It uses neither the network nor a clock. For example,
// here's what happens if a Service is recreated and its slice is gone for a moment:
//
//	event             existing  deleted, with expiry  in use
//	                  a                               a
//	0 s  a deleted              a 10 s                a
//	3 s  b added      b         a 10 s                b, plus endpoints that only a has
//	10 s              b                               b

const (
	removalDelay      = 10 * time.Second
	maxSlices         = 10_000
	maxTotalEndpoints = 200_000 // in all slices together; a cluster has at most 150,000 pods
)

const defaultReason = "there is no such Service, or it has the type ExternalName, or no selector" // used if the account isn't allowed to get Services

// snapshot is immutable. It's only a Source so that we can pass it through discovery.Shared. It's
// never started.
type snapshot struct {
	discovery.Source
	existing map[string]*slice
	deleted  map[string]*slice
	notes    []string
	reason   string // why there aren't any slices, or ""
}

type collection struct {
	slices    map[string]*slice
	notes     map[string]string // one per invalid slice, keyed by its name, plus events we had to ignore
	endpoints int
}

func newCollection() *collection {
	return &collection{slices: make(map[string]*slice), notes: make(map[string]string)}
}

func (c *collection) put(sl *slice, problem error, last *slice) {
	// If the slice has a problem or exceeds a limit, we add a note and stick with its last good
	// form. That's the one in c or, if there isn't any, last.
	name, size := sl.name, len(sl.endpoints)
	before := c.remove(name)
	last = cmp.Or(before, last)
	switch {
	case name == "":
		problem = cmp.Or(problem, errors.New("it has no name"))
	case problem != nil:
	case size > maxEndpoints || len(sl.ports) > maxPorts:
		problem = fmt.Errorf("it has more than %d endpoints or %d ports", maxEndpoints, maxPorts)
	case sl.hasLongText():
		problem = fmt.Errorf("it has a string of more than %d bytes", maxText)
	case before == nil && len(c.slices) >= maxSlices:
		problem = fmt.Errorf("there are more than %d slices", maxSlices)
	case c.endpoints+size > maxTotalEndpoints:
		problem = fmt.Errorf("there are more than %d endpoints", maxTotalEndpoints)
	default:
		c.slices[name] = sl
		c.endpoints += size
		return
	}
	given := printable.Quote(printable.Line(name, 100))
	text := fmt.Sprintf("slice %s is ignored: %v", given, problem)
	if last != nil {
		text = fmt.Sprintf("slice %s is used in its previous version: %v", given, problem)
		c.put(last, nil, nil) // adds just a note if last exceeds a limit
	}
	c.note(noteKey(name), text)
}

func (c *collection) note(key, text string) (isNew bool) {
	if c.notes[key] != "" || len(c.notes) >= maxNotes {
		return false
	}
	c.notes[key] = printable.Line(text, 300)
	return true
}

// An invalid name may be megabytes long, so we shorten it.
func noteKey(name string) string { return printable.Line(name, 300) }

func (c *collection) noteEvent(e *event) (isNew bool) {
	text := "an event of the unknown type " + printable.Quote(printable.Line(e.Type, 40)) + " has no effect"
	if e.Type == "" && e.problem != nil {
		text = "an event has no effect: " + printable.Line(e.problem.Error(), 200)
	}
	return c.note(text, text)
}

func (c *collection) remove(name string) *slice {
	sl := c.slices[name]
	if sl != nil {
		c.endpoints -= len(sl.endpoints)
	}
	delete(c.slices, name)
	delete(c.notes, noteKey(name))
	return sl
}

type knownSlices struct {
	*collection
	deleted *collection
}

func newKnownSlices() *knownSlices { return &knownSlices{newCollection(), newCollection()} }

func (k *knownSlices) remove(name string, now time.Time) {
	if sl := k.collection.remove(name); sl != nil {
		k.keepDeleted([]*slice{sl}, now)
	}
}

func (k *knownSlices) replace(all *collection, now time.Time) {
	var gone []*slice
	for name, sl := range k.slices {
		if all.slices[name] == nil {
			gone = append(gone, sl)
		}
	}
	k.collection = all
	k.keepDeleted(gone, now)
}

func (k *knownSlices) keepDeleted(gone []*slice, now time.Time) {
	// If none of a Service's slices are left, we also start over with those that were deleted
	// before, so all of them stay for the full time.
	services := make(map[string]bool)
	for _, sl := range gone {
		services[sl.Service] = true
	}
	for _, sl := range k.slices {
		delete(services, sl.Service)
	}
	var again []*slice
	for _, sl := range k.deleted.slices {
		if services[sl.Service] {
			again = append(again, sl)
		}
	}
	for _, sl := range append(again, gone...) {
		kept := *sl
		kept.expiry = now.Add(removalDelay)
		k.deleted.put(&kept, nil, nil)
	}
}

func (k *knownSlices) expire(now time.Time) (next time.Time) {
	for name, sl := range k.deleted.slices {
		if !sl.expiry.After(now) || k.slices[name] != nil {
			k.deleted.remove(name)
		} else if next.IsZero() || sl.expiry.Before(next) {
			next = sl.expiry
		}
	}
	return next
}

func (k *knownSlices) snapshot() *snapshot {
	return &snapshot{existing: maps.Clone(k.slices), deleted: maps.Clone(k.deleted.slices), notes: slices.Sorted(maps.Values(k.notes))}
}
