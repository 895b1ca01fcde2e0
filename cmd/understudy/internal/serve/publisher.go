package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/internal/envoy/filewatch"
)

// publisher serves the clusters of files and targets, and keeps track of their changes. Only wake
// is safe for concurrent use.
type publisher struct {
	files     *files
	targets   *followedTargets
	clusters  *clusters
	resources *resources
	clients   *clients
	store     *store
	metrics   *metrics
	log       *slog.Logger

	wakeups        chan struct{}
	rereadAll      atomic.Bool       // read all files next time, even those that haven't changed
	loggedProblems map[string]string // keyed by source
}

// newPublisher fails if there's nothing to serve: no target, no cached cluster, and none of the
// paths exists. Even then, it may return a publisher that has to be closed.
func newPublisher(o Options) (*publisher, error) {
	p := &publisher{
		files:          newFiles(o.Paths, o.Log),
		clusters:       &clusters{delay: o.RemovalDelay, served: make(map[string]servedCluster)},
		resources:      newResources(o.Policy),
		metrics:        newMetrics(o.droppedLines),
		log:            o.Log,
		wakeups:        make(chan struct{}, 1),
		loggedProblems: make(map[string]string),
	}
	p.clients = newClients(o.Log, p.metrics, int(min(o.MaxNames, 1<<30)))
	var err error
	if p.targets, err = followTargets(o, p.wake); err != nil {
		return nil, err
	}
	return p, p.begin(o)
}

func (p *publisher) close() {
	p.targets.close()
	p.store.close()
}

func (p *publisher) begin(o Options) error {
	if err := p.restore(o.Cache); err != nil {
		return err
	}
	problems := p.reload()
	if len(p.clusters.served) > 0 || len(o.From) > 0 {
		return nil
	}
	if !slices.ContainsFunc(p.files.paths, func(path string) bool { return !errors.Is(problems[path], fs.ErrNotExist) }) {
		return fmt.Errorf("nothing to serve: %w", problems[p.files.paths[0]])
	}
	p.log.Warn("nothing to serve yet", "error", fmt.Sprintf("no valid endpoints file at %q: want files, or directories with files that end in %q", p.files.paths, extensions))
	return nil
}

func (p *publisher) restore(directory string) (err error) {
	// Serve what's in the cache until the files replace it.
	var entries []entry
	if p.store, entries, err = openStore(directory, p.log); p.store == nil {
		return err
	}
	targets := p.targets.read()
	for _, e := range entries {
		if !p.files.covers(e.Source) && !slices.ContainsFunc(targets, func(r reading) bool { return r.source == e.Source }) {
			continue
		}
		name, restored := e.parsed.GetName(), servedCluster{cluster: e.parsed, source: e.Source}
		if e.Lost {
			restored.missingSince = time.Now()
		}
		p.clusters.served[name] = restored
		p.log.Info("cluster restored from the cache", "cluster", name, "file", e.Source)
	}
	p.clusters.index()
	p.store.offered = maps.Clone(p.clusters.served)
	p.publish(changes{updated: slices.Collect(maps.Keys(p.clusters.served)), incomplete: true})
	return nil
}

func (p *publisher) wake() {
	select {
	case p.wakeups <- struct{}{}:
	default:
	}
}

func (p *publisher) run(ctx context.Context) {
	for {
		p.store.offer(p.clusters.served)
		select {
		case <-ctx.Done():
			return
		case <-p.wakeups:
		case <-time.After(filewatch.Interval):
		}
		if p.rereadAll.Swap(false) {
			p.log.Info("all files are read again, as requested")
			for _, file := range p.files.byPath {
				file.Again()
			}
		}
		p.reload()
	}
}

func (p *publisher) reload() map[string]error {
	all := p.files.read(p.clusters.bySource)
	c := p.clusters.update(time.Now(), append(all, p.targets.read()...))
	p.publish(c)
	p.metrics.clusters.Set(float64(len(p.clusters.served)))
	p.metrics.rejected.Set(float64(len(c.problems)))
	for _, name := range c.updated {
		s := p.clusters.served[name]
		p.log.Info("cluster served", "cluster", name, "file", s.source, "localities", len(s.cluster.endpoints.GetEndpoints()), "endpoints", s.cluster.endpointCount())
	}
	for _, name := range c.missing {
		p.log.Warn("cluster no longer has a file", "cluster", name, "removal_in", p.clusters.delay.String())
	}
	for _, name := range c.removed {
		p.log.Warn("cluster removed", "cluster", name)
	}
	p.logProblems(c)
	return c.problems
}

func (p *publisher) publish(c changes) {
	if err := p.resources.set(c, p.clusters.served); err != nil {
		p.log.Error("clusters cannot be served", "error", err.Error())
	}
}

func (p *publisher) logProblems(c changes) {
	for _, source := range slices.Sorted(maps.Keys(p.loggedProblems)) {
		if c.problems[source] == nil {
			delete(p.loggedProblems, source)
			p.log.Info("no longer rejected", "path", source)
		}
	}
	for _, source := range slices.Sorted(maps.Keys(c.problems)) {
		text := c.problems[source].Error()
		if p.loggedProblems[source] == text {
			continue
		}
		p.loggedProblems[source] = text
		served, level := p.clusters.bySource[source], slog.LevelError
		if _, ok := c.problems[source].(emptyClusters); ok { //nolint:errorlint // any other problem counts as an error
			served, level = c.kept[source], slog.LevelWarn
		}
		if len(served) > 0 {
			p.log.Log(context.Background(), level, "rejected, its last good content is still served", "clusters", served, "error", text)
		} else {
			p.log.Log(context.Background(), level, "rejected, and not served", "error", text)
		}
	}
}
