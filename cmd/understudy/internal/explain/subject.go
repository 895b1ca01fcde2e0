package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	_ "github.com/understudy-lb/understudy/discovery/kubernetes" // registers Kubernetes targets
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// ErrNoAnswer is returned by Run if we couldn't get any endpoints for a target.
var ErrNoAnswer = errors.New("no answer")

const maxWait = 15 * time.Second // longer than a channel would wait

// A subject is something to explain, either a cluster or a target.
type subject struct {
	name       string
	mechanisms []mechanism
	notes      []string
}

type mechanism struct {
	name, entry string // all mechanisms of an entry have the same source
	answer      *topology.Checked
	standsFor   string // what the names in the answer would resolve to; only a channel looks them up
	failure     string // why there's no answer
}

func isTarget(argument string) bool {
	first, _, _ := strings.Cut(argument, ",")
	scheme, _, found := strings.Cut(first, ":")
	return strings.Contains(argument, "://") || xnet.IsHostList(first) || found && resolver.Get(scheme) != nil
}

func (o *Options) subjects(ctx context.Context) (list []subject, asList bool, settings options.Settings, err error) {
	if isTarget(o.File) {
		if o.Cluster != "" {
			return nil, false, settings, fmt.Errorf("--cluster %.100q: given with a target; want a file with a list of clusters", o.Cluster)
		}
		s, settings, err := o.ofTarget(ctx)
		return []subject{s}, false, settings, err
	}
	var doc *clusterfile.Document
	if o.File == "-" {
		doc, err = clusterfile.LoadFrom(o.In, "stdin")
	} else {
		doc, err = clusterfile.Load(o.File)
	}
	if err == nil {
		settings, err = parseOptions(o.Options)
	}
	if err != nil {
		return nil, false, settings, err
	}
	names := doc.Names()
	if o.Cluster != "" {
		if _, err := doc.Choose(o.Cluster); err != nil {
			return nil, false, settings, fmt.Errorf("--cluster: %w", err)
		}
		names = []string{o.Cluster}
	}
	for _, name := range names {
		s := subject{name: name}
		g := doc.Resolve(name)
		if located, ok := errors.AsType[*messages.Invalid](g.Notes); ok {
			s.notes = messages.Texts(located.Problems)
		}
		for _, m := range g.List {
			if err := s.addCluster(m); err != nil {
				return nil, false, settings, err
			}
		}
		list = append(list, s)
	}
	return list, doc.Clusters != nil && o.Cluster == "", settings, nil
}

// If a channel would have to look up the endpoints, we add a single one in their place.
func (s *subject) addCluster(c cds.Mechanism) (err error) {
	if c.Err != nil {
		s.add(mechanism{name: c.Name, failure: c.Err.Error()}, "")
		return nil
	}
	m, answer := mechanism{name: c.Name, standsFor: "all addresses of the name"}, c.Cluster.Answer
	switch c.Cluster.Kind {
	case cds.LogicalDNS:
		answer.Resolved = []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: c.Cluster.Host}}}}
	case cds.EDS:
		answer.Resolved = []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "eds:" + c.Cluster.Service}}}}
		m.standsFor = "the endpoints of " + c.Cluster.Service + " by EDS"
	}
	if m.answer, err = topology.Check(&answer, nil); err == nil {
		s.add(m, "")
	}
	return err
}

func (s *subject) add(m mechanism, prefix string) {
	if m.answer == nil {
		m.answer = &topology.Checked{Answer: &discovery.Answer{Resolved: []resolver.Endpoint{}}}
		s.notes = append(s.notes, m.failure)
	}
	for _, note := range m.answer.Notes {
		s.notes = append(s.notes, prefix+note)
	}
	if len(m.answer.Normalized()) == 0 {
		s.notes = append(s.notes, m.answer.Why+": no calls can be made")
	}
	s.mechanisms = append(s.mechanisms, m)
}

func parseOptions(given []string) (settings options.Settings, err error) {
	query, err := join.WithOptions("", given)
	if err != nil {
		return settings, err
	}
	values, _ := url.ParseQuery(strings.TrimPrefix(query, "?")) // can't fail, WithOptions has escaped it
	if settings, err = options.ParseSettings(values); err != nil {
		err = fmt.Errorf("--option: %w", err)
	}
	return settings, err
}

func (o *Options) ofTarget(ctx context.Context) (s subject, settings options.Settings, err error) {
	target, err := join.WithOptions(o.File, o.Options)
	if err == nil {
		s.name, settings, err = join.Settings(target)
	}
	if err != nil {
		return s, settings, err
	}
	sources, err := o.Kubeconfig.Sources(target)
	if err != nil {
		return s, settings, err
	}
	state, err := await(ctx, target, options.Program{Sources: sources})
	if err != nil {
		return s, settings, err
	}
	if state.Why != "" {
		s.notes = append(s.notes, state.Why)
	}
	for _, m := range state.Mechanisms {
		prefix := strings.TrimPrefix(m.Name+": ", ": ")
		failure := prefix + m.Trouble
		if m.Answer != nil && m.Trouble != "" {
			s.notes = append(s.notes, failure)
		}
		s.add(mechanism{name: cmp.Or(m.Name, s.name), entry: m.Entry, answer: m.Answer, failure: failure}, prefix)
	}
	for _, name := range state.Waiting {
		s.notes = append(s.notes, fmt.Sprintf("%s: no answer within %v", name, maxWait))
	}
	return s, settings, nil
}

// await returns once all mechanisms have answered or failed, or after maxWait.
func await(ctx context.Context, target string, program options.Program) (last join.State, err error) {
	states := make(chan join.State, 1)
	stop, err := join.Follow(target, program, func(state join.State) {
		select {
		case <-states: // drop the previous state if nobody has looked at it yet
		default:
		}
		states <- state
	})
	if err != nil {
		return last, err
	}
	defer stop()
	limited, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	for waiting := true; waiting; {
		select {
		case last = <-states:
			waiting = len(last.Waiting) > 0
		case <-limited.Done():
			waiting = false
		}
	}
	if ctx.Err() == nil && len(last.Mechanisms) == 0 {
		err = fmt.Errorf("%w: %s", ErrNoAnswer, cmp.Or(last.Why, fmt.Sprintf("%s: no answer within %v", printable.HideText(target), maxWait)))
	}
	return last, cmp.Or(ctx.Err(), err)
}
