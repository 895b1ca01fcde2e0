package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/internal/envoy/filewatch"
)

// publisher serves the clusters of files and targets and follows their changes. Except for
// requestReload and wake, its methods must not be called concurrently.
type publisher struct {
	files     *files
	targets   *followedTargets
	clusters  *clusters
	resources *resources
	clients   *clients
	store     clusterStore // nil without a cache directory
	metrics   *metrics
	log       *slog.Logger

	wakeups        chan time.Time    // makes run read the changed files
	rereadAll      atomic.Bool       // the next reload also reads unchanged files
	loggedProblems map[string]string // last logged problem, by path
}

// newPublisher reads the files for the first time. It fails if no path exists and there is neither
// a target nor a cached cluster. With o.Strict, it fails if there is any problem.
func newPublisher(o Options) (*publisher, error) {
	if o.RemovalDelay < 0 {
		return nil, fmt.Errorf("removal delay %v: want 0 or more", o.RemovalDelay)
	}
	files, err := newFiles(o.Paths, o.Log, len(o.From) > 0)
	if err != nil {
		return nil, err
	}
	p := &publisher{
		files:          files,
		clusters:       newClusters(o.RemovalDelay),
		resources:      newResources(o.Policy),
		metrics:        newMetrics(o.droppedLines),
		log:            o.Log,
		wakeups:        make(chan time.Time, 1),
		loggedProblems: make(map[string]string),
	}
	p.clients = newClients(o.Log, p.metrics, o.MaxNames)
	if p.targets, err = followTargets(o, p.wake); err != nil {
		return nil, err
	}
	if err := p.begin(o); err != nil {
		p.targets.close()
		return nil, err
	}
	return p, nil
}

func (p *publisher) begin(o Options) error {
	if err := p.restore(o.Cache); err != nil {
		return err
	}
	if err := p.files.checkExist(); err != nil && len(p.clusters.served) == 0 && len(o.From) == 0 {
		return fmt.Errorf("nothing to serve: %w", err)
	}
	var problem error
	if o.Strict {
		problem = p.targets.waitForAnswers()
	}
	problems := p.reload()
	if o.Strict {
		for _, path := range slices.Sorted(maps.Keys(problems)) {
			problem = errors.Join(problem, problems[path])
		}
		if problem != nil {
			return problem
		}
		if len(p.clusters.served) == 0 && len(o.From) == 0 {
			return p.nothingToServe()
		}
	}
	if len(p.clusters.served) == 0 && len(o.Paths) > 0 {
		p.log.Warn("nothing to serve yet", "error", p.nothingToServe().Error())
	}
	return nil
}

// restore serves the clusters of the cache directory, if there is one, until the files replace
// them.
func (p *publisher) restore(directory string) error {
	if directory == "" {
		return nil
	}
	store, err := openStore(directory, p.log)
	if err != nil {
		return err
	}
	p.store = store
	var names []string
	targets := p.targets.origins()
	for _, entry := range store.load(func(o origin) bool { return targets[o] || p.files.covers(o.path()) }) {
		names = append(names, entry.parsed.name())
		p.clusters.restore(entry.File, entry.parsed, entry.Lost)
		p.log.Info("cluster restored from the cache", "cluster", entry.parsed.name(), "file", entry.File.path())
	}
	p.publish(names, nil, true)
	return nil
}

func (p *publisher) nothingToServe() error {
	return fmt.Errorf("no valid endpoints file at %q: want files, or directories with files that end in %q", p.files.paths, extensions)
}

// requestReload makes run read all files soon, even unchanged files.
func (p *publisher) requestReload() {
	p.rereadAll.Store(true)
	p.wake()
}

// wake makes run read changed files and serve the targets' clusters soon.
func (p *publisher) wake() {
	select {
	case p.wakeups <- time.Now():
	default:
	}
}

func (p *publisher) run(ctx context.Context, w *filewatch.Watcher) {
	p.files.notice = w.Of
	saver := startSaver(ctx, p.store)
	defer func() { saver.stop(p.clusters.served) }()
	for {
		saver.offer(p.clusters.served)
		if _, ok := w.Wait(ctx.Done(), p.wakeups); !ok {
			return
		}
		if p.rereadAll.Swap(false) {
			p.log.Info("all files are read again, as requested")
			p.files.rereadAll()
		}
		p.reload()
	}
}

// reload reads the files and serves the clusters of files and targets. It returns the problems by
// path.
func (p *publisher) reload() map[string]error {
	found, problems := p.files.read(slices.Collect(maps.Keys(p.clusters.clusterByFile)))
	failing, unknown := p.targets.addClusters(found, p.clusters.clusterByFile)
	changes := p.clusters.update(time.Now(), found)
	// Add the rejected files to the problems only after the call of hasUnknown. The content of a
	// file is known even if it is rejected because another file has the same cluster.
	incomplete := unknown || p.hasUnknown(found, problems)
	for _, o := range slices.Sorted(maps.Keys(changes.rejected)) {
		other := changes.rejected[o]
		problem := fmt.Errorf("%s: cluster %q is already in %s", o.path(), found[o].name(), other.path())
		if before := problems[o.path()]; before != nil {
			problem = fmt.Errorf("%w; %w", before, problem)
		}
		problems[o.path()] = problem
	}
	p.publish(slices.Concat(changes.added, changes.changed), changes.removed, incomplete)
	p.metrics.load(len(p.clusters.served), len(problems)+failing)
	p.logChanges(changes)
	p.logProblems(problems, found)
	return problems
}

// publish sends the updated clusters to the clients that request them, and removes the clusters in
// removed. incomplete means that clusters may be missing, because the content of some file or
// target has never been known.
func (p *publisher) publish(updated, removed []string, incomplete bool) {
	clusters := make([]*clusterConfig, len(updated))
	for i, name := range updated {
		clusters[i] = p.clusters.served[name].cluster
	}
	known := nothingKnown
	switch loaded := p.resources.current.Load().known != nothingKnown || len(updated) > 0; {
	case loaded && incomplete:
		known = partlyKnown
	case loaded:
		known = allKnown
	}
	if err := p.resources.set(clusters, removed, known); err != nil {
		p.log.Error("clusters cannot be served", "error", err.Error())
	}
	for _, name := range removed {
		p.metrics.remove(name)
	}
}

// hasUnknown reports whether there is a cluster, file or directory whose content has never been
// known.
func (p *publisher) hasUnknown(found map[origin]*clusterConfig, problems map[string]error) bool {
	known := make(map[string]bool)
	for o := range p.clusters.clusterByFile {
		known[o.path()], known[filepath.Dir(o.path())] = true, true
	}
	for o, cluster := range found {
		if _, served := p.clusters.clusterByFile[o]; cluster == nil && !served {
			return true
		}
	}
	for path := range problems {
		if !known[path] {
			return true
		}
	}
	return false
}

func (p *publisher) logChanges(c changes) {
	for _, name := range slices.Concat(c.added, c.changed) {
		s := p.clusters.served[name]
		p.log.Info("cluster served", "cluster", name, "file", s.file.path(), "localities", len(s.cluster.endpoints.GetEndpoints()), "endpoints", s.cluster.endpointCount())
	}
	for _, name := range c.missing {
		p.log.Warn("cluster no longer has a file", "cluster", name, "removal_in", p.clusters.delay.String())
	}
	for _, name := range c.removed {
		p.log.Warn("cluster removed", "cluster", name)
	}
}

func (p *publisher) logProblems(problems map[string]error, found map[origin]*clusterConfig) {
	for _, path := range slices.Sorted(maps.Keys(p.loggedProblems)) {
		if problems[path] == nil {
			delete(p.loggedProblems, path)
			p.log.Info("no longer rejected", "path", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(problems)) {
		text := problems[path].Error()
		if p.loggedProblems[path] == text {
			continue
		}
		p.loggedProblems[path] = text
		served, level := p.servedFrom(path), slog.LevelError
		if _, ok := problems[path].(emptyClusters); ok { //nolint:errorlint // another problem of the file counts as an error
			level = slog.LevelWarn
			served = slices.DeleteFunc(served, func(name string) bool { return found[p.clusters.served[name].file] != nil })
		}
		if len(served) > 0 {
			p.log.Log(context.Background(), level, "rejected, its last good content is still served", "clusters", served, "error", text)
		} else {
			p.log.Log(context.Background(), level, "rejected, and not served", "error", text)
		}
	}
}

func (p *publisher) servedFrom(path string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.clusters.served)) {
		if within(p.clusters.served[name].file.path(), path) {
			names = append(names, name)
		}
	}
	return names
}
