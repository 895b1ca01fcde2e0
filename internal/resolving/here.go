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

type here struct {
	given   location.Location
	sources []location.Teller // may know missing fields after their first answers
	// missing is called if the location lacks a field that prefer needs.
	missing func()
	prefer  string
}

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

// newHere returns the client's location from the settings, the environment and the sources in
// parts. It calls note for each setting that has no effect.
func newHere(given options.Settings, parts []discovery.Mechanism, note func(string)) *here {
	h := &here{prefer: given.Prefer}
	h.missing = sync.OnceFunc(func() {
		note(fmt.Sprintf("prefer=%s has no effect: the location of this client is unknown; set it by zone= or UNDERSTUDY_ZONE, for example", given.Prefer))
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
		h.Location() // calls missing if a field is missing, because no source can add it later
	}
	return h
}
