package join

import (
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/lb/live"
)

func (j *Join) updateLive() {
	var sources []live.Source
	for _, s := range j.core.Statuses() {
		source := live.Source{
			Name:      s.Name,
			State:     s.Phase.String(),
			Trying:    s.Trying,
			Version:   s.Answer.Version,
			Answered:  s.Answered,
			Error:     s.Trouble.Text,
			Since:     s.Trouble.Since,
			Confirmed: s.Trouble.Confirmed,
			LastError: s.LastError,
			FailedAt:  s.FailedAt,
		}
		if source.Name == "" {
			source.Name = j.config.Scheme
		}
		switch c, _ := s.Answer.Content.(*topology.Checked); {
		case c != nil:
			source.Notes, source.Endpoints, source.Priorities = c.Notes, c.Endpoints, max(len(c.Priorities), min(len(c.Resolved), 1))
		case s.Failed:
			source.Priorities = 1 // the failed mechanism counts as one priority without endpoints
		}
		sources = append(sources, source)
	}
	j.shownSources.Store(&sources)
}
