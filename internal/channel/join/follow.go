package join

import (
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
	core "github.com/understudy-lb/understudy/internal/core/join"
)

type MechanismState struct {
	Name, Entry      string // Entry is the part of the target that this mechanism came from, or Name
	Answer           *topology.Checked
	OutlierDetection string
	Trouble          string
}

// State is what a channel with the same target would currently know.
type State struct {
	// Mechanisms has the mechanisms that have answered or failed, in priority order. It's empty
	// until the first answer.
	Mechanisms []MechanismState
	// Why has the failures so far, or what we're waiting for. Once there's been an answer, it only
	// has current problems of sources whose last answer was a list of mechanisms.
	Why     string
	Waiting []string // names of mechanisms that have neither answered nor failed
}

type follower struct {
	Join
	onState func(State)
	last    State
	why     string
	hasSent bool // a channel would have had an update by now
}

// Follow runs the sources of a target without a channel. Whenever such a channel would have a new
// state, it calls onState, one call at a time, until stop is called. onState may call stop itself.
// The target either has the scheme of a registered source or is a list without the prefix
// failover:///. Policy parameters have no effect.
func Follow(target string, program options.Program, onState func(State)) (stop func(), err error) {
	b, parsed, err := parseTarget(target, program)
	if err != nil {
		return nil, err
	}
	const credsHaveName = true // we don't connect, so we don't need server names either
	config, _, err := b.configOf(discovery.Target{Target: parsed, Channel: parsed, ClientConn: closedConn{}}, credsHaveName)
	if err != nil {
		return nil, err
	}
	followed, err := follow(config, onState)
	if err != nil {
		return nil, b.Prefixed(err, parsed)
	}
	return followed.Close, nil
}

func follow(config *Config, onState func(State)) (*Join, error) {
	f := &follower{onState: onState}
	f.config, f.Join.handle, f.afterBatch = config, f.handle, f.notify
	return &f.Join, f.start()
}

func (f *follower) handle(m core.Message) error {
	f.hasSent = f.hasSent || m.Kind == core.Send
	f.why = f.line(m.Name, m.Text)
	return nil
}

func (f *follower) notify() {
	var state State
	var lists []string
	for _, s := range f.core.Statuses() {
		switch trouble := s.Trouble().Text; {
		case s.Listed && trouble != "":
			lists = append(lists, strings.TrimPrefix(s.Name+": ", ": ")+trouble)
		case s.Listed:
		case s.Phase == core.Outstanding:
			state.Waiting = append(state.Waiting, s.Name)
		case f.hasSent:
			answer, _ := s.Answer.Content.(*topology.Checked)
			state.Mechanisms = append(state.Mechanisms, MechanismState{s.Name, f.sources[s.ID].entry.Name, answer, s.OutlierDetection, trouble})
		}
	}
	if state.Why = f.why; f.hasSent {
		state.Why = strings.Join(lists, "; ")
	}
	if state.Why != f.last.Why || !slices.Equal(state.Mechanisms, f.last.Mechanisms) {
		f.last = state
		f.onState(state)
	}
}
