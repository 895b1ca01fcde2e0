package join

import (
	"cmp"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/lb/live"
)

func (j *Join) updateLive() {
	var sources []live.Source
	for _, s := range j.core.Statuses() {
		trouble := s.Trouble()
		source := live.Source{
			Name:      cmp.Or(s.Name, j.config.Scheme),
			State:     s.Phase.String(),
			Trying:    s.Trying,
			Version:   s.Answer.Version,
			Answered:  s.Answered,
			Error:     trouble.Text,
			Since:     trouble.Since,
			Confirmed: trouble.Confirmed,
			LastError: s.LastError,
			FailedAt:  s.FailedAt,
		}
		switch c, _ := s.Answer.Content.(*topology.Checked); {
		case c != nil:
			source.Notes, source.Endpoints, source.Priorities = c.Notes, c.Endpoints, max(len(c.Priorities), min(len(c.Resolved), 1))
		case s.Phase == core.Failed:
			source.Priorities = 1 // a failed mechanism is shown as one priority without endpoints
		}
		sources = append(sources, source)
	}
	j.shownSources.Store(&sources)
}
