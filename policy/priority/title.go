package priority

import (
	"fmt"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

const maxNameLength = 80 // bytes, give or take a few

func (p *policy) updateTitles() {
	// A title is the child's number plus its name at the source, such as "p0 us-east/a, us-east/b".
	// Failing that, it's the name in the configuration. If a child is no longer a priority, it
	// keeps its title.
	names := stateattr.ChannelOf(p.state).Names
	titles := make(map[string]string, len(p.config.Priorities))
	for child := range p.children {
		titles[child] = p.title(child)
	}
	titles[p.inUse] = p.title(p.inUse)
	for i, child := range p.config.Priorities {
		name, known := names[child]
		if !known {
			name = child
		}
		titles[child] = fmt.Sprintf("p%d", i)
		if name != "" && name != titles[child] {
			titles[child] += " " + printable.Line(name, maxNameLength)
		}
	}
	p.titles = titles
}

func (p *policy) sourceTitle(child string) string {
	if _, known := stateattr.ChannelOf(p.state).Names[child]; !known {
		return ""
	}
	return p.title(child)
}

func (p *policy) title(child string) string {
	if title, ok := p.titles[child]; ok {
		return title
	}
	if name := stateattr.ChannelOf(p.state).Names[child]; name != "" {
		return printable.Line(name, maxNameLength)
	}
	return printable.Line(child, maxNameLength)
}
