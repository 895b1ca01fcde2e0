package join

import (
	"slices"

	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/topology"
)

// Found is one mechanism of a target.
type Found struct {
	Name string // "" where there is no other
	// Answer is its last answer, nil for none.
	Answer *topology.Checked
	// OutlierDetection is its cluster's configuration, "" for none.
	OutlierDetection string
	// Trouble is its source's present problem, "" for none.
	Trouble string
}

// News is what a channel to a target would use at the same time.
type News struct {
	// Found are the mechanisms that have answered or failed, in priority order. It is empty before
	// the first answer; Why is then what is waited for, or what failed.
	Found []Found
	Why   string
	// Waiting are the mechanisms that have neither answered nor failed.
	Waiting []string
}

// follower passes on the messages for a channel.
type follower struct {
	Join
	news func(News)
	last News // the last message
	told bool // it has not been passed on
}

// Follow starts the mechanisms without a channel. news receives each change, one call at a time,
// until Close. It may call Close and must not block.
func Follow(config Config, news func(News)) (*Join, error) {
	f := &follower{news: news}
	f.config, f.to, f.settled = config, f, f.passOn
	return &f.Join, f.start()
}

func (*follower) close() {}

// tell records a message.
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

// passOn passes on the last message and the problems of sources, which a channel receives only
// without an answer.
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
