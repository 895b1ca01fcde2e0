package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/resolver"

	_ "github.com/understudy-lb/understudy/discovery/kubernetes" // registers Kubernetes targets
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/core/clusters"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// ErrNoAnswer is returned by Run if there are no endpoints for a target.
var ErrNoAnswer = errors.New("no answer")

// maxWait limits the wait for discovery mechanisms that have not answered. A channel does not wait
// as long.
const maxWait = 15 * time.Second

// isTarget reports whether an argument is a target, and not the name of a file.
func isTarget(argument string) bool {
	first, _, _ := strings.Cut(argument, ",")
	scheme, _, found := strings.Cut(first, ":")
	return strings.Contains(argument, "://") || xnet.IsHostList(first) || found && resolver.Get(scheme) != nil
}

// resolveTarget returns an explanation with the current answers of a target. The settings come from
// the target and the options.
func resolveTarget(ctx context.Context, opts Options) (*explanation, topology.Settings, error) {
	target, err := join.WithOptions(opts.File, opts.Options)
	if err != nil {
		return nil, topology.Settings{}, err
	}
	name, settings, err := join.Settings(target)
	if err != nil {
		return nil, topology.Settings{}, err
	}
	sources, err := opts.Kubeconfig.Sources(target)
	if err != nil {
		return nil, topology.Settings{}, err
	}
	state, err := await(ctx, target, options.Program{Sources: sources})
	if err != nil {
		return nil, topology.Settings{}, err
	}
	s := &explanation{name: name}
	if state.Why != "" {
		s.notes = append(s.notes, state.Why)
	}
	for _, mechanism := range state.Mechanisms {
		if err := s.add(mechanism); err != nil {
			return nil, topology.Settings{}, err
		}
	}
	for _, name := range state.Waiting {
		s.notes = append(s.notes, fmt.Sprintf("%s: no answer within %v", name, maxWait))
	}
	return s, topology.Settings(settings), nil
}

// await follows a target until each discovery mechanism has answered or failed, but no longer than
// maxWait. It returns the latest state of the mechanisms.
func await(ctx context.Context, target string, program options.Program) (last join.State, err error) {
	states := make(chan join.State, 1)
	stop, err := join.Follow(target, program, func(state join.State) {
		select {
		case <-states: // discard an older value that was not received
		default:
		}
		states <- state
	})
	if err != nil {
		return join.State{}, err
	}
	defer stop()
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	for waiting := true; waiting; {
		select {
		case last = <-states:
			waiting = len(last.Waiting) > 0
		case <-timeout.C:
			waiting = false
		case <-ctx.Done():
			return join.State{}, ctx.Err()
		}
	}
	switch {
	case len(last.Mechanisms) > 0:
		return last, nil
	case last.Why == "":
		last.Why = fmt.Sprintf("%s: no answer within %v", printable.HideText(target), maxWait)
	}
	return join.State{}, fmt.Errorf("%w: %s", ErrNoAnswer, last.Why)
}

func (s *explanation) add(state join.MechanismState) error {
	mechanism := cds.Mechanism{Entry: clusters.Entry{Name: cmp.Or(state.Name, s.name)}}
	prefix := strings.TrimPrefix(state.Name+": ", ": ")
	if state.Answer == nil {
		mechanism.Err = errors.New(prefix + state.Trouble)
		s.mechanisms = append(s.mechanisms, mechanism)
		return nil
	}
	if state.Trouble != "" {
		s.notes = append(s.notes, prefix+state.Trouble)
	}
	for _, note := range state.Answer.Notes {
		s.notes = append(s.notes, prefix+note)
	}
	cluster, leftOut, err := messages.Write(mechanism.Name, state.Answer)
	if err != nil {
		return errors.New(prefix + err.Error())
	}
	mechanism.Cluster = &cds.Cluster{Name: mechanism.Name, Assignment: cluster}
	if state.OutlierDetection != "" {
		if mechanism.Cluster.OutlierDetection, err = topology.ParseOutlierDetection(state.OutlierDetection); err != nil {
			return err
		}
	}
	for _, note := range leftOut {
		s.notes = append(s.notes, prefix+note)
	}
	s.mechanisms = append(s.mechanisms, mechanism)
	return nil
}
