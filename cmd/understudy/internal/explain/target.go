package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "github.com/understudy-lb/understudy/discovery/kubernetes" // registers its targets
	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy"
	"github.com/understudy-lb/understudy/internal/join"
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/resolving"
	"github.com/understudy-lb/understudy/internal/topology"
)

// ErrNoAnswer is returned by Run if there are no endpoints for a target.
var ErrNoAnswer = errors.New("no answer")

// mostWait limits the wait for mechanisms that have not answered. A channel would wait for a
// shorter time.
const mostWait = 15 * time.Second

func isTarget(file string) bool { return strings.Contains(file, "://") }

// followed returns the current answers of a target. The settings come from the target and the
// options.
func followed(ctx context.Context, opts Options) (*subject, topology.Settings, error) {
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
	s := &subject{name: name}
	for _, found := range news.Found {
		if err := s.add(found); err != nil {
			return nil, topology.Settings{}, err
		}
	}
	for _, name := range news.Waiting {
		s.notes = append(s.notes, fmt.Sprintf("%s: no answer within %v", name, mostWait))
	}
	return s, topology.Settings(settings), nil
}

// await follows a target until each discovery mechanism has answered or failed, but no longer than
// mostWait. It returns the latest state of the mechanisms.
func await(ctx context.Context, target string, program options.Program) (last join.News, err error) {
	news := make(chan join.News, 1)
	stop, err := resolving.Follow(target, program, func(n join.News) {
		select {
		case <-news: // n replaces an older value that nobody has received
		default:
		}
		news <- n
	})
	if err != nil {
		return join.News{}, err
	}
	defer stop()
	over := time.NewTimer(mostWait)
	defer over.Stop()
	for waits := true; waits; {
		select {
		case last = <-news:
			waits = len(last.Waiting) > 0
		case <-over.C:
			waits = false
		case <-ctx.Done():
			return join.News{}, ctx.Err()
		}
	}
	switch {
	case len(last.Found) > 0:
		return last, nil
	case last.Why == "":
		last.Why = fmt.Sprintf("%s: nothing was heard for %v", resolving.Shown(target), mostWait)
	}
	return join.News{}, fmt.Errorf("%w: %s", ErrNoAnswer, last.Why)
}

func (s *subject) add(found join.Found) error {
	part := clusterfile.Mechanism{Cluster: found.Name}
	if part.Cluster == "" {
		part.Cluster = s.name
	}
	prefix := strings.TrimPrefix(found.Name+": ", ": ")
	if found.Answer == nil {
		part.Err = errors.New(prefix + found.Trouble)
		s.parts = append(s.parts, part)
		return nil
	}
	if found.Trouble != "" {
		s.notes = append(s.notes, prefix+found.Trouble)
	}
	for _, note := range found.Answer.Notes {
		s.notes = append(s.notes, prefix+note)
	}
	if found.OutlierDetection != "" {
		o, err := topology.ParseOutlierDetection(found.OutlierDetection)
		if err != nil {
			return err
		}
		part.OutlierDetection = o
	}
	part.Endpoints = envoy.Write(part.Cluster, found.Answer)
	s.parts = append(s.parts, part)
	return nil
}
