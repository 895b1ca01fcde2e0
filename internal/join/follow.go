package join

import (
	"slices"

	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/topology"
)

// Found is the state of one mechanism of a target.
type Found struct {
	Name string // "" if the target has only one mechanism
	// Answer is the last answer of the mechanism, or nil if there is none.
	Answer *topology.Checked
	// OutlierDetection is the configuration of the mechanism's cluster, or "" if there is none.
	OutlierDetection string
	// Trouble is the current problem of the mechanism's source, or "" if there is none.
	Trouble string
}

// News is the state that a channel to a target would have at the same time.
type News struct {
	// Found holds the mechanisms that have answered or failed, in priority order. It is empty
	// before the first answer; in that case, Why describes what the target waits for, or what
	// failed.
	Found []Found
	Why   string
	// Waiting holds the names of the mechanisms that have neither answered nor failed.
	Waiting []string
}

// follower is a consumer that has no channel.
type follower struct {
	Join
	news func(News)
	last News // the last message
	told bool // news has not yet received last
}

// Follow starts the mechanisms without a channel. It calls news after each change, until Close.
// Calls of news do not overlap; news may call Close and must not block.
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

// passOn calls news with the last message and the problems of the sources. Unlike a follower, a
// channel receives those problems only if it has no answer.
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
