package join

import (
	"slices"

	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/topology"
)

// Found is what one mechanism of a target has.
type Found struct {
	Name string // "" where there is no other
	// Answer is the last one, nil where there never was one.
	Answer *topology.Checked
	// OutlierDetection is what its cluster says of it, "" for nothing.
	OutlierDetection string
	// Trouble is what is wrong with its source, "" for nothing.
	Trouble string
}

// News is what a target leads to, as a channel to it would use it at the same time.
type News struct {
	// Found are the mechanisms that have answered or failed, in priority order. There are none
	// before one has answered: Why then says what is waited for, or what failed.
	Found []Found
	Why   string
	// Waiting are the mechanisms that have neither answered nor failed.
	Waiting []string
}

// follower passes on what a channel would be told.
type follower struct {
	Join
	news func(News)
	last News // and what it was
	told bool // it has not been passed on
}

// Follow starts the mechanisms for one who is no channel. Whatever changes is passed to news, one
// call at a time, until Close; news may call Close, and must not wait.
func Follow(config Config, news func(News)) (*Join, error) {
	f := &follower{news: news}
	f.config, f.to, f.settled = config, f, f.passOn
	return &f.Join, f.start()
}

func (*follower) close() {}

// tell notes a message.
func (f *follower) tell(m core.Message) error {
	var n News
	for i := range m.List {
		s := &m.List[i]
		found := Found{Name: s.Name, OutlierDetection: s.OutlierDetection, Trouble: s.Trouble}
		found.Answer, _ = s.Answer.Content.(*topology.Checked)
		n.Found = append(n.Found, found)
	}
	if m.Kind != core.Send {
		n.Why = f.line(m.Name, m.Text)
	}
	f.last, f.told = n, true
	return nil
}

// passOn passes on what was told, and what is wrong with sources. A channel learns of that only
// where it has nothing else.
func (f *follower) passOn() {
	troubles := make(map[string]string)
	var waiting []string
	for _, s := range f.core.Look() {
		troubles[s.Name] = s.Trouble.Text
		if s.Phase == core.Outstanding {
			waiting = append(waiting, s.Name)
		}
	}
	for i := range f.last.Found {
		found := &f.last.Found[i]
		if now := troubles[found.Name]; found.Answer != nil && now != found.Trouble {
			found.Trouble, f.told = now, true
		}
	}
	if f.told {
		f.told = false
		f.news(News{slices.Clone(f.last.Found), f.last.Why, waiting})
	}
}
