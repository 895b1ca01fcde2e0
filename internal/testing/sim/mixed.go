package sim

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

// mixed is a failover: target of several sources, each with its own priorities.
type mixed struct {
	parts  []mixedPart
	nested int // the entries from this one on form a nested list; 0 if there is none
}

type mixedPart struct {
	Source
	tiers   int // the number of its priorities; the last source has all that are left
	failing bool
}

// newMixed spreads the priorities over different sources in random order.
func newMixed(w *World, config Config) *mixed {
	kinds := []string{"failover", "dns", "eds", "file", "srv", "kubernetes"}
	w.rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	m := &mixed{}
	for first := 0; first < len(w.truth); {
		p := mixedPart{tiers: 1 + w.rand.IntN(2)}
		rest := w.truth[first:]
		if last := len(m.parts) == 2; last || p.tiers > len(rest) {
			p.tiers = len(rest)
		}
		p.Source = w.newLeaf(kinds[len(m.parts)], rest[:p.tiers], first, config)
		m.parts = append(m.parts, p)
		first += p.tiers
	}
	m.nested = w.rand.IntN(len(m.parts))
	return m
}

func (m *mixed) Target() string {
	list := func(parts []mixedPart) string {
		var targets []string
		for _, p := range parts {
			targets = append(targets, url.PathEscape(p.Target()))
		}
		return strings.Join(targets, ",")
	}
	if m.nested == 0 {
		return "failover:///" + list(m.parts)
	}
	return "failover:///" + list(m.parts[:m.nested]) + "," + url.PathEscape("failover:///"+list(m.parts[m.nested:]))
}

func (m *mixed) Options() []given.Option {
	var all []given.Option
	for _, p := range m.parts {
		all = append(all, p.Options()...)
	}
	return all
}

func (m *mixed) split(truth Truth) []Truth {
	own := make([]Truth, len(m.parts))
	for i, p := range m.parts {
		n := min(p.tiers, len(truth))
		if i == len(m.parts)-1 {
			n = len(truth)
		}
		own[i], truth = truth[:n:n], truth[n:]
	}
	return own
}

func (m *mixed) redetect(r *rand.Rand) {
	for _, p := range m.parts {
		redetect(p.Source, r)
	}
}

// lacks reports whether a source has no usable endpoints.
func (m *mixed) lacks(truth Truth) bool {
	for i, own := range m.split(truth) {
		if len(m.parts[i].Sees(own).serving()) == 0 {
			return true
		}
	}
	return false
}

// deletes reports whether a Service of one of the sources may be missing.
func (m *mixed) deletes() bool {
	return slices.ContainsFunc(m.parts, func(p mixedPart) bool {
		k, is := p.Source.(*kube)
		return is && k.deletes()
	})
}

func (m *mixed) Sees(truth Truth) Truth {
	var seen Truth
	for i, own := range m.split(truth) {
		seen = append(seen, m.parts[i].Sees(own)...)
	}
	return seen
}

func (m *mixed) Publish(truth Truth) {
	for i, own := range m.split(truth) {
		m.parts[i].Publish(own)
	}
}

// Fail makes one source fail, or each with a probability of one half.
func (m *mixed) Fail(r *rand.Rand) string {
	one := r.IntN(2 * len(m.parts))
	var what []string
	for i := range m.parts {
		if p := &m.parts[i]; one == i || one >= len(m.parts) && r.IntN(2) == 0 {
			p.failing = true
			what = append(what, p.Fail(r))
		}
	}
	return strings.Join(what, "; ")
}

func (m *mixed) Restore() {
	for i := range m.parts {
		if p := &m.parts[i]; p.failing {
			p.failing = false
			p.Restore()
		}
	}
}

func (m *mixed) Lag() time.Duration { return m.longest(Source.Lag) }

func (m *mixed) Recovery() time.Duration { return m.longest(Source.Recovery) }

func (m *mixed) longest(of func(Source) time.Duration) time.Duration {
	longest := time.Duration(0)
	for _, p := range m.parts {
		longest = max(longest, of(p.Source))
	}
	return longest
}

func (m *mixed) Close() {
	for _, p := range m.parts {
		p.Close()
	}
}

// part returns the source of type T, or the zero value if there is none.
func part[T Source](w *World) (found T) {
	all := []Source{w.source}
	if m, ok := w.source.(*mixed); ok {
		for _, p := range m.parts {
			all = append(all, p.Source)
		}
	}
	if i := slices.IndexFunc(all, func(s Source) bool { _, ok := s.(T); return ok }); i >= 0 {
		found = all[i].(T)
	}
	return found
}

func (m *mixed) Fixed() bool { return true }
