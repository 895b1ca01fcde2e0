package rehearse

import (
	"slices"
	"strconv"
	"time"

	"github.com/understudy-lb/understudy/internal/core/join"
	core "github.com/understudy-lb/understudy/internal/core/priority"
)

// startSources starts the sources of the client's target, just like internal/channel/join does in a
// new process that has no stored answers. A source that works answers right away. If it has a
// fault, it answers when the fault ends.
func (c *channel) startSources() {
	m, w := c.model, &c.model.world
	var list []join.Mechanism
	for p := range m.servers {
		if last := len(list) - 1; p > 0 && w.Entry(p) == w.Entry(p-1) {
			list[last].Given = append(list[last].Given.([]int), p)
		} else {
			list = append(list, join.Mechanism{Name: strconv.Itoa(p), Given: []int{p}})
		}
	}
	joined, actions := join.New(at(m.now), join.Config{
		Patience: max(join.Patience, w.Policy.FailoverTimeout),
		Kept:     func(join.ID) (join.Kept, bool) { return join.Kept{}, false },
	}, list)
	c.join = joined
	for _, a := range actions {
		fault, ends := m.sourceFault(a.Given.([]int))
		answer := func() { joined.Answered(at(m.now), a.ID, join.Answer{Content: a.ID}) }
		switch {
		case ends == 0:
			answer()
		case fault == SourceFails:
			joined.Failed(at(m.now), a.ID, a.Name)
			fallthrough
		default:
			m.at(ends, func() {
				answer()
				c.deliver()
			})
		}
		joined.Started(at(m.now), a.ID, join.Hears{})
	}
	c.deliver()
}

// sourceFault returns the current fault of these priorities' source, if any, and when the fault
// ends.
func (m *model) sourceFault(priorities []int) (f Fault, ends time.Duration) {
	for _, e := range m.world.Events {
		if (e.Fault == SourceSilent || e.Fault == SourceFails) && (Span{e.From, e.To}).Has(m.now) && slices.Contains(priorities, e.Priority) {
			return e.Fault, e.To
		}
	}
	return 0, 0
}

func (c *channel) deliver() {
	m := c.model
	for message := c.join.Next(); message.Kind != join.Nothing; message = c.join.Next() {
		switch message.Kind {
		case join.Send:
			c.update()
		case join.Report:
			c.state = core.TransientFailure
			m.after(0, c.pickAgain)
		}
		c.join.Delivered(true, 0)
	}
	if wake := c.join.Wake(); !wake.IsZero() {
		m.at(wake.Sub(at(0)), func() {
			c.join.Tick(at(m.now))
			c.deliver()
		})
	}
}

func (c *channel) update() {
	if c.start < 0 {
		c.start = c.model.now
	}
	config := c.model.world.Policy.Config
	sourcePriorities := config.SourcePriorities
	config.SourcePriorities = nil
	for _, s := range c.join.Statuses() {
		if s.Phase != join.Answered {
			continue
		}
		for _, p := range s.Given.([]int) {
			if config.Priorities = append(config.Priorities, c.names[p]); sourcePriorities != nil {
				config.SourcePriorities = append(config.SourcePriorities, sourcePriorities[p])
			}
		}
	}
	config.Children = config.Priorities
	c.handle(c.core.BeginUpdate(config))
	c.handle(c.core.EndUpdate())
}
