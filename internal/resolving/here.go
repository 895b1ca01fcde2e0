package resolving

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/location"
	"github.com/understudy-lb/understudy/internal/options"
)

// here tells where the client of a channel runs.
type here struct {
	given   location.Location
	sources []location.Teller // that may know what is not given, once they have answered
	// missing is called when somebody asks, and a preference has no place.
	missing func()
	prefer  string
}

// Place implements location.Teller.
func (h *here) Location() location.Location {
	p := h.given
	for _, s := range h.sources {
		p = p.Or(s.Location())
	}
	if !p.Serves(h.prefer) {
		h.missing()
	}
	return p
}

// newHere returns what tells the place of a channel, and says by note what has no effect.
func newHere(given options.Settings, parts []discovery.Mechanism, note func(string)) *here {
	h := &here{prefer: given.Prefer}
	h.missing = sync.OnceFunc(func() {
		note(fmt.Sprintf("prefer=%s has no effect: nobody says where this client runs, such as by zone= or UNDERSTUDY_ZONE", given.Prefer))
	})
	if given.Prefer == "" && !slices.ContainsFunc(parts, func(p discovery.Mechanism) bool { return p.Prefer != "" }) {
		return h
	}
	var notes []string
	h.given, notes = location.Of(given.Location(), os.Getenv)
	for _, text := range notes {
		note(text)
	}
	for _, p := range parts {
		if s, ok := p.Source.(location.Teller); ok {
			h.sources = append(h.sources, s)
		}
	}
	if h.sources == nil {
		h.Location() // which finds out what is missing
	}
	return h
}
