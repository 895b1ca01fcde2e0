package join

import (
	"slices"

	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/topology"
)

// Found is the state of one discovery mechanism that has answered or failed.
type Found struct {
	Name             string
	Answer           *topology.Checked
	OutlierDetection string
	Trouble          string
}

// News is the information that a channel with the same target would have at a given time.
type News struct {
	// Found holds the mechanisms that have answered or failed, in priority order. Until one has
	// answered, Found is empty, and Why contains the failures or what the target waits for.
	Found   []Found
	Why     string
	Waiting []string
}

type follower struct {
	Join
	news func(News)
	last News
	told bool
}

// Follow runs the mechanisms of a target without a channel. Until Close, it calls news after each
// change. The calls do not overlap. news may call Close, and must not block.
func Follow(config Config, news func(News)) (*Join, error) {
	f := &follower{news: news}
	f.config, f.to, f.settled = config, f, f.passOn
	return &f.Join, f.start()
}

func (*follower) close() {}

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

// passOn calls news. It adds the present problems of all sources to the last message, because
// messages contain them only until the first answer.
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
