package join

import (
	"slices"
	"strings"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
	core "github.com/understudy-lb/understudy/internal/core/join"
)

// MechanismState is the state of one discovery mechanism that has answered or failed.
type MechanismState struct {
	Name, Entry      string // Entry is the name of the target's mechanism whose source has sent it, or Name
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
	why     string
	hasSent bool // the channel would have had an update
}

// Follow runs the sources of a target without a channel. Until stop is called, it calls onState
// with each new state that a channel would have, one call at a time. onState may call stop. The
// target has the scheme of a registered source, or is a list without the prefix failover:///.
// Parameters for policies have no effect.
func Follow(target string, given options.Program, onState func(State)) (stop func(), err error) {
	b, parsed, err := parseTarget(target, given)
	if err != nil {
		return nil, err
	}
	const credsHaveName = true // without credentials, server names have no effect
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
			state.Mechanisms = append(state.Mechanisms, MechanismState{s.Name, f.slots[s.ID].entry, answer, s.OutlierDetection, trouble})
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
