package feed

import (
	"time"

	"github.com/understudy-lb/understudy/internal/live"
)

// phaseNames are what people call the phases.
var phaseNames = [...]string{outstanding: "no answer yet", failed: "failed", answered: "answered"}

// sources returns what is known of each source in use, in priority order.
func (f *Feed) sources() []live.Source {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sources []live.Source
	for _, s := range f.inUse() {
		source := live.Source{
			Name:       s.Name,
			State:      phaseNames[s.phaseOf()],
			Version:    s.said.version,
			Answered:   s.answered,
			Error:      s.complaint,
			LastError:  s.lastError,
			FailedAt:   s.failedAt,
			Endpoints:  len(s.tree.Endpoints),
			Priorities: len(s.tree.Priorities()),
		}
		if source.Error == "" && s.err != nil {
			source.Error = s.err.Error()
		}
		sources = append(sources, source)
	}
	return sources
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
