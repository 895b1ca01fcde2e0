package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "github.com/understudy-lb/understudy/discovery/kubernetes" // registers Kubernetes targets
	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy"
	"github.com/understudy-lb/understudy/internal/join"
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/resolving"
	"github.com/understudy-lb/understudy/internal/topology"
)

// ErrNoAnswer is returned by Run if there are no endpoints for a target.
var ErrNoAnswer = errors.New("no answer")

// maxWait limits the wait for discovery mechanisms that have not answered. A channel does not wait
// as long.
const maxWait = 15 * time.Second

func isTarget(file string) bool { return strings.Contains(file, "://") }

// resolveTarget returns an explanation with the current answers of a target. The settings come from
// the target and the options.
func resolveTarget(ctx context.Context, opts Options) (*explanation, topology.Settings, error) {
	target, err := resolving.WithOptions(opts.File, opts.Options)
	if err != nil {
		return nil, topology.Settings{}, err
	}
	settings, err := resolving.Settings(target)
	if err != nil {
		return nil, topology.Settings{}, err
	}
	name, _ := resolving.Authority(target)
	sources, err := opts.Kubeconfig.Sources(target)
	if err != nil {
		return nil, topology.Settings{}, err
	}
	news, err := await(ctx, target, options.Program{Sources: sources})
	if err != nil {
		return nil, topology.Settings{}, err
	}
	s := &explanation{name: name}
	if news.Why != "" {
		s.notes = append(s.notes, news.Why)
	}
	for _, mechanism := range news.Found {
		if err := s.add(mechanism); err != nil {
			return nil, topology.Settings{}, err
		}
	}
	for _, name := range news.Waiting {
		s.notes = append(s.notes, fmt.Sprintf("%s: no answer within %v", name, maxWait))
	}
	return s, topology.Settings(settings), nil
}

// await follows a target until each discovery mechanism has answered or failed, but no longer than
// maxWait. It returns the latest state of the mechanisms.
func await(ctx context.Context, target string, program options.Program) (last join.News, err error) {
	news := make(chan join.News, 1)
	stop, err := resolving.Follow(target, program, func(n join.News) {
		select {
		case <-news: // discard an older value that was not received
		default:
		}
		news <- n
	})
	if err != nil {
		return join.News{}, err
	}
	defer stop()
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	for waiting := true; waiting; {
		select {
		case last = <-news:
			waiting = len(last.Waiting) > 0
		case <-timeout.C:
			waiting = false
		case <-ctx.Done():
			return join.News{}, ctx.Err()
		}
	}
	switch {
	case len(last.Found) > 0:
		return last, nil
	case last.Why == "":
		last.Why = fmt.Sprintf("%s: nothing was heard for %v", resolving.Shown(target), maxWait)
	}
	return join.News{}, fmt.Errorf("%w: %s", ErrNoAnswer, last.Why)
}

func (s *explanation) add(answer join.Found) error {
	mechanism := clusterfile.Mechanism{Cluster: answer.Name}
	if mechanism.Cluster == "" {
		mechanism.Cluster = s.name
	}
	prefix := strings.TrimPrefix(answer.Name+": ", ": ")
	if answer.Answer == nil {
		mechanism.Err = errors.New(prefix + answer.Trouble)
		s.mechanisms = append(s.mechanisms, mechanism)
		return nil
	}
	if answer.Trouble != "" {
		s.notes = append(s.notes, prefix+answer.Trouble)
	}
	for _, note := range answer.Answer.Notes {
		s.notes = append(s.notes, prefix+note)
	}
	if answer.OutlierDetection != "" {
		o, err := topology.ParseOutlierDetection(answer.OutlierDetection)
		if err != nil {
			return err
		}
		mechanism.OutlierDetection = o
	}
	mechanism.Endpoints = envoy.Write(mechanism.Cluster, answer.Answer)
	s.mechanisms = append(s.mechanisms, mechanism)
	return nil
}
