package join

import (
	"slices"
	"strings"

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
	// Found contains the mechanisms that have answered or failed, in priority order. Until a mechanism
	// has answered, Found is empty, and Why contains the failures or what the target waits for. After
	// that, Why contains the present problems of sources whose last answers were lists of mechanisms.
	Found   []Found
	Why     string
	Waiting []string // the names of the mechanisms that have neither answered nor failed
}

type follower struct {
	Join
	news    func(News)
	last    News
	changed bool
}

// Follow runs the mechanisms of a target without a channel. Until Close, it calls news after each
// change. The calls do not overlap. news may call Close, and must not block.
func Follow(config Config, news func(News)) (*Join, error) {
	f := &follower{news: news}
	f.config, f.consumer, f.afterBatch = config, f, f.notify
	return &f.Join, f.start()
}

func (*follower) close() {}

func (f *follower) handle(m core.Message) error {
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
	f.last, f.changed = n, true
	return nil
}

// notify calls the function that Follow has received, if something has changed. It adds the present
// problems of all sources to the last message, because later messages do not contain them.
func (f *follower) notify() {
	troubles := make(map[string]string)
	var waiting, lists []string
	for _, s := range f.core.Statuses() {
		if s.Listed {
			if s.Trouble.Text != "" {
				lists = append(lists, strings.TrimPrefix(s.Name+": ", ": ")+s.Trouble.Text)
			}
			continue
		}
		troubles[s.Name] = s.Trouble.Text
		if s.Phase == core.Outstanding {
			waiting = append(waiting, s.Name)
		}
	}
	for i := range f.last.Found {
		found := &f.last.Found[i]
		if current := troubles[found.Name]; found.Answer != nil && current != found.Trouble {
			found.Trouble, f.changed = current, true
		}
	}
	if len(f.last.Found) > 0 {
		text := strings.Join(lists, "; ")
		f.changed = f.changed || text != f.last.Why
		f.last.Why = text
	}
	if f.changed {
		f.changed = false
		f.news(News{slices.Clone(f.last.Found), f.last.Why, waiting})
	}
}
