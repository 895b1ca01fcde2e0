package join

import (
	"fmt"
	"os"
	"slices"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/location"
)

type clientLocation struct {
	configured location.Location
	sources    []location.Teller // may learn more fields from their first answers
	prefer     string
	note       func(string)
}

func (h *clientLocation) Location() location.Location {
	p := h.configured
	for _, s := range h.sources {
		p = p.Or(s.Location())
	}
	if !p.Serves(h.prefer) {
		h.note(fmt.Sprintf("prefer=%s has no effect: the location of this client is unknown; set it with zone= or UNDERSTUDY_ZONE, for example", h.prefer))
	}
	return p
}

// The location is made up of the settings, the environment and whatever the entries' sources
// know. note is called for every setting that has no effect. It may get the same text again, but
// should only log it once.
func newClientLocation(settings options.Settings, entries []Entry, note func(string)) *clientLocation {
	h := &clientLocation{prefer: settings.Prefer, note: note}
	if settings.Prefer == "none" || settings.Prefer == "" && !slices.ContainsFunc(entries, func(e Entry) bool { return e.Prefer != "" }) {
		return h
	}
	var notes []string
	h.configured, notes = location.Of(settings.Location(), os.Getenv)
	for _, text := range notes {
		note(text)
	}
	for _, e := range entries {
		if s, ok := e.Source.(location.Teller); ok {
			h.sources = append(h.sources, s)
		}
	}
	if h.sources == nil {
		h.Location() // no source can fill in a missing field later, so complain now
	}
	return h
}
