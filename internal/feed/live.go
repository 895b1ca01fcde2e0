package feed

import (
	"time"

	"github.com/understudy-lb/understudy/internal/live"
)

// phaseNames are what people call the phases.
var phaseNames = [...]string{outstanding: "no answer yet", failed: "failed", answered: "answered"}

// sources returns what is known of each source in use, in priority order. A source that
// gave a list of parts stands before them while something is wrong with it.
func (f *Feed) sources() []live.Source {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sources []live.Source
	for _, s := range f.slots {
		if s.parts.now == nil {
			sources = append(sources, s.source())
			continue
		}
		if whole := s.source(); whole.Error != "" {
			if whole.Name == "" {
				whole.Name = f.config.Scheme
			}
			sources = append(sources, whole)
		}
		for _, p := range s.parts.now {
			sources = append(sources, p.source())
		}
	}
	return sources
}

// source returns what is known of a source.
func (s *slot) source() live.Source {
	source := live.Source{
		Name:       s.Name,
		State:      phaseNames[s.phaseOf()],
		Version:    s.said.version,
		Answered:   s.answered,
		LastError:  s.lastError,
		FailedAt:   s.failedAt,
		Endpoints:  len(s.tree.Endpoints),
		Priorities: len(s.tree.Priorities()),
	}
	for _, t := range []trouble{s.lost, s.complaint} { // what it says itself counts more
		if t.text != "" {
			source.Error, source.Since, source.Confirmed = t.text, t.since, t.confirmed
		}
	}
	return source
}

// wrong notes what the source says is wrong. The lock is held.
func (s *slot) wrong(text string) {
	if live.On() {
		s.lastError, s.failedAt = text, time.Now()
	}
}

// confirmed notes that the source of s stands by its answer now.
func (s *slot) confirmed() {
	if live.On() {
		s.answered = time.Now()
	}
}
