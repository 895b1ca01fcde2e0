package join

import (
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	core "github.com/understudy-lb/understudy/internal/core/join"
)

// MechanismState is the state of one discovery mechanism that has answered or failed.
type MechanismState struct {
	Name             string
	Answer           *topology.Checked
	OutlierDetection string
	Trouble          string
}

// State is the information that a channel with the same target would have at a given time.
type State struct {
	// Mechanisms contains the mechanisms that have answered or failed, in priority order. Until a
	// mechanism has answered, Mechanisms is empty, and Why contains the failures or what the target
	// waits for. After that, Why contains the present problems of sources whose last answers were lists
	// of mechanisms.
	Mechanisms []MechanismState
	Why        string
	Waiting    []string // the names of the mechanisms that have neither answered nor failed
}

type follower struct {
	Join
	onState func(State)
	last    State
	changed bool
}

// Follow runs the mechanisms of a target without a channel. Until Close, it calls onState after
// each change. The calls do not overlap. onState may call Close, and must not block.
func Follow(config Config, onState func(State)) (*Join, error) {
	f := &follower{onState: onState}
	f.config, f.consumer, f.afterBatch = config, f, f.notify
	return &f.Join, f.start()
}

func (*follower) close() {}

func (f *follower) handle(m core.Message) error {
	var state State
	for i := range m.List {
		s := &m.List[i]
		mechanism := MechanismState{Name: s.Name, OutlierDetection: s.OutlierDetection, Trouble: s.Trouble}
		mechanism.Answer, _ = s.Answer.Content.(*topology.Checked)
		state.Mechanisms = append(state.Mechanisms, mechanism)
	}
	if m.Kind != core.Send {
		state.Why = f.line(m.Name, m.Text)
	}
	f.last, f.changed = state, true
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
	for i := range f.last.Mechanisms {
		mechanism := &f.last.Mechanisms[i]
		if current := troubles[mechanism.Name]; mechanism.Answer != nil && current != mechanism.Trouble {
			mechanism.Trouble, f.changed = current, true
		}
	}
	if len(f.last.Mechanisms) > 0 {
		text := strings.Join(lists, "; ")
		f.changed = f.changed || text != f.last.Why
		f.last.Why = text
	}
	if f.changed {
		f.changed = false
		f.onState(State{slices.Clone(f.last.Mechanisms), f.last.Why, waiting})
	}
}
