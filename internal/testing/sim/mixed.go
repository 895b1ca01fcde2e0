package sim

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

// mixed is the source of a failover: target whose entries are other sources, each with its own
// priorities.
type mixed struct {
	entries     []mixedEntry
	firstNested int // index of the first entry in a nested failover: target, or 0
}

type mixedEntry struct {
	Source
	priorities int // how many the entry has; the last entry also gets any that are left
	failing    bool
}

func newMixed(w *World, config Config) *mixed {
	kinds := []string{"failover", "eds", "file"}
	w.rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	m := &mixed{}
	for first := 0; first < len(w.truth); {
		p := mixedEntry{priorities: 1 + w.rand.IntN(2)}
		rest := w.truth[first:]
		if last := len(m.entries) == 2; last || p.priorities > len(rest) {
			p.priorities = len(rest)
		}
		p.Source = w.newLeaf(kinds[len(m.entries)], rest[:p.priorities], first, config)
		m.entries = append(m.entries, p)
		first += p.priorities
	}
	m.firstNested = w.rand.IntN(len(m.entries))
	return m
}

func (m *mixed) Target() string {
	list := func(entries []mixedEntry) string {
		var targets []string
		for _, p := range entries {
			targets = append(targets, url.PathEscape(p.Target()))
		}
		return strings.Join(targets, ",")
	}
	if m.firstNested == 0 {
		return "failover:///" + list(m.entries)
	}
	return "failover:///" + list(m.entries[:m.firstNested]) + "," + url.PathEscape("failover:///"+list(m.entries[m.firstNested:]))
}

func (m *mixed) Options() []given.Option {
	var all []given.Option
	for _, p := range m.entries {
		all = append(all, p.Options()...)
	}
	return all
}

func (m *mixed) split(truth EndpointSet) []EndpointSet {
	byEntry := make([]EndpointSet, len(m.entries))
	for i, p := range m.entries {
		n := min(p.priorities, len(truth))
		if i == len(m.entries)-1 {
			n = len(truth)
		}
		byEntry[i], truth = truth[:n:n], truth[n:]
	}
	return byEntry
}

func (m *mixed) Visible(truth EndpointSet) EndpointSet {
	var seen EndpointSet
	for i, entryTruth := range m.split(truth) {
		seen = append(seen, m.entries[i].Visible(entryTruth)...)
	}
	return seen
}

func (m *mixed) Publish(truth EndpointSet) {
	for i, entryTruth := range m.split(truth) {
		m.entries[i].Publish(entryTruth)
	}
}

// Fail makes one random source fail or, half of the time, each source with a probability of one
// half.
func (m *mixed) Fail(r *rand.Rand) string {
	choice := r.IntN(2 * len(m.entries))
	var what []string
	for i := range m.entries {
		if p := &m.entries[i]; choice == i || choice >= len(m.entries) && r.IntN(2) == 0 {
			p.failing = true
			what = append(what, p.Fail(r))
		}
	}
	return strings.Join(what, "; ")
}

func (m *mixed) Restore() {
	for i := range m.entries {
		if p := &m.entries[i]; p.failing {
			p.failing = false
			p.Restore()
		}
	}
}

func (m *mixed) Lag() time.Duration { return m.longest(Source.Lag) }

func (m *mixed) Recovery() time.Duration { return m.longest(Source.Recovery) }

func (m *mixed) longest(duration func(Source) time.Duration) time.Duration {
	longest := time.Duration(0)
	for _, p := range m.entries {
		longest = max(longest, duration(p.Source))
	}
	return longest
}

func (m *mixed) Close() {
	for _, p := range m.entries {
		p.Close()
	}
}

func sourceOf[T Source](w *World) (found T) {
	all := []Source{w.source}
	if m, ok := w.source.(*mixed); ok {
		for _, p := range m.entries {
			all = append(all, p.Source)
		}
	}
	if i := slices.IndexFunc(all, func(s Source) bool { _, ok := s.(T); return ok }); i >= 0 {
		found = all[i].(T)
	}
	return found
}

func (m *mixed) KeepsEmptyPriorities() bool { return true }
