package explain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	"github.com/understudy-lb/understudy/internal/core/priority"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// A hypothesis is an assumption about the endpoints.
type hypothesis struct {
	// down reports whether an address of an endpoint refuses connections.
	down func(e *Endpoint, address string) bool
}

// An outcome is the result of a hypothesis: where calls go.
type outcome struct {
	inUse   string
	ready   bool // calls succeed, unless they are dropped
	shares  map[*Endpoint]float64
	dropped float64 // fraction of all calls that are dropped
	err     error
}

// A simulation runs the decision code of a plan's policies, without a network. Endpoints connect or
// fail at once, and no timers run. The outcomes are therefore exact and the same on every machine.
type simulation struct {
	plan       plan
	config     *lbconfig.Priority
	priorities []topology.TreePriority
	children   map[string]*child

	core             *priority.Core
	current          hypothesis
	reports          map[string]report
	standbyRequested bool // the core has requested a call of StandbyDue
}

func newSimulation(p plan, owners map[mechanismAddress]*Endpoint) (*simulation, error) {
	config := p.tree.Config()
	s := &simulation{plan: p, config: config, priorities: p.tree.Priorities, children: make(map[string]*child)}
	for name, c := range config.Children {
		child, err := newChild(c.Config)
		if err != nil {
			return nil, err
		}
		s.children[name] = child
	}
	for _, e := range p.tree.Endpoints {
		s.add(e, owners)
	}
	for _, c := range s.children {
		c.finish()
	}
	return s, nil
}

func configOf[T any](policy lbconfig.Policy) (T, error) {
	config, ok := policy.Config.(T)
	if !ok {
		return config, fmt.Errorf("the tree has a policy %s with a configuration of type %T, want %T", policy.Name(), policy.Config, config)
	}
	return config, nil
}

// run starts a new priority policy under the first hypothesis, and then switches to each further
// hypothesis. It returns the outcome of the last hypothesis.
func (s *simulation) run(hypotheses ...hypothesis) outcome {
	s.core = priority.New()
	for i, h := range hypotheses {
		s.current, s.reports = h, make(map[string]report)
		if i == 0 {
			s.execute(s.core.BeginUpdate(s.coreConfig()))
			s.execute(s.core.EndUpdate())
		} else {
			for _, name := range s.config.Priorities {
				if _, exists := s.core.State(name); exists {
					s.report(name)
				}
			}
		}
		for s.standbyRequested {
			s.standbyRequested = false
			s.execute(s.core.StandbyDue())
		}
	}
	return s.outcome()
}

// coreConfig returns the configuration of the priority policy, without delays, because no time
// passes.
func (s *simulation) coreConfig() priority.Config {
	return priority.Config{
		Children:         slices.Sorted(maps.Keys(s.config.Children)),
		Priorities:       s.config.Priorities,
		SourcePriorities: s.config.SourcePriorities,
		FailoverTimeout:  time.Duration(s.config.FailoverTimeout),
		WarmStandby:      int(s.config.WarmStandby),
		Overflow:         s.config.Overflow,
	}
}

// execute executes the actions of the priority policy, except for timers and publications.
func (s *simulation) execute(actions []priority.Action) {
	for _, a := range actions {
		switch a.Kind {
		case priority.Update:
			s.report(a.Child)
			s.execute(s.core.Updated(a.Child))
		case priority.CallStandbyDue:
			s.standbyRequested = true
		}
	}
}

func (s *simulation) report(name string) {
	r := s.children[name].report(s.current)
	s.reports[name] = r
	state := priority.TransientFailure
	if r.ready {
		state = priority.Ready
	}
	s.execute(s.core.Reported(name, state))
}

func (s *simulation) outcome() outcome {
	o := outcome{inUse: s.core.InUse(), shares: make(map[*Endpoint]float64)}
	if o.inUse == "" {
		o.err = priority.ErrEmpty
		if s.plan.tree.Why != "" {
			o.err = fmt.Errorf("%w: %s", o.err, s.plan.tree.Why)
		}
		return o
	}
	r := s.reports[o.inUse]
	passRate := 1.0
	for _, d := range s.children[o.inUse].drops {
		if d.RequestsPerMillion > 0 && o.err == nil {
			o.err = status.Errorf(codes.Unavailable, "call dropped by configuration, category %q", d.Category)
		}
		passRate *= 1 - float64(d.RequestsPerMillion)/lbconfig.Million
	}
	o.dropped = 1 - passRate
	if o.ready = r.ready; !r.ready {
		if passRate > 0 {
			o.err = s.unavailableError()
		}
		return o
	}
	r.addShares(passRate, o.shares)
	return o
}

const maxReasons = 8

// unavailableError returns the error of calls when no priority can receive them. It contains the
// reason for each priority.
func (s *simulation) unavailableError() error {
	var reasons []string
	for i, p := range s.priorities {
		if i == maxReasons {
			reasons = append(reasons, fmt.Sprintf("and %d more", len(s.priorities)-i))
			break
		}
		c := s.children[p.Child]
		reason := s.plan.failures[p.Child]
		if reason == "" && c.size == 0 {
			reason = p.Why
		}
		if reason == "" {
			reason = s.reports[p.Child].err
		}
		text := fmt.Sprintf("p%d %s: %s", i, s.plan.names[p.Child], reason)
		if c.size > 0 {
			text += " (" + printable.Count(c.size, "endpoint", "endpoints") + ")"
		}
		reasons = append(reasons, text)
	}
	return errors.New("no priority can take calls: " + strings.Join(reasons, "; "))
}

func (s *simulation) isStandby(name string) bool { return s.core.Standby(name) }
