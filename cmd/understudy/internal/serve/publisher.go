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

	"github.com/understudy-lb/understudy/internal/filewatch"
)

// publisher serves the clusters of files and targets and follows their changes. Except for ask and
// wake, its methods must not be called concurrently.
type publisher struct {
	files     *files
	follows   *follows
	clusters  *clusters
	resources *resources
	clients   *clients
	store     keeper // nil without a cache directory
	gauges    gauges
	log       *slog.Logger

	asked  chan time.Time    // signals that changed files should be read
	forget atomic.Bool       // the next reload also reads unchanged files
	said   map[string]string // the last logged problem, by path
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
		files:     files,
		clusters:  newClusters(o.RemovalDelay),
		resources: newResources(o.Policy),
		clients:   newClients(o.Log, o.Limits),
		log:       o.Log,
		asked:     make(chan time.Time, 1),
		said:      make(map[string]string),
	}
	if p.follows, err = startFollows(o, p.wake); err != nil {
		return nil, err
	}
	if err := p.begin(o); err != nil {
		p.follows.close()
		return nil, err
	}
	return p, nil
}

func (p *publisher) begin(o Options) error {
	if err := p.restore(o.Cache); err != nil {
		return err
	}
	if err := p.files.exist(); err != nil && len(p.clusters.served) == 0 && len(o.From) == 0 {
		return fmt.Errorf("nothing to serve: %w", err)
	}
	var all error
	if o.Strict {
		all = p.follows.settle()
	}
	problems := p.reload()
	if o.Strict {
		for _, path := range slices.Sorted(maps.Keys(problems)) {
			all = errors.Join(all, problems[path])
		}
		if all != nil {
			return all
		}
		if len(p.clusters.served) == 0 && len(o.From) == 0 {
			return p.nothing()
		}
	}
	if len(p.clusters.served) == 0 && len(o.Paths) > 0 {
		p.log.Warn("nothing to serve yet", "error", p.nothing().Error())
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
	targets := p.follows.origins()
	for _, entry := range store.load(func(o origin) bool { return targets[o] || p.files.covers(o.path()) }) {
		names = append(names, entry.given.name())
		p.clusters.restore(entry.File, entry.given, entry.Lost)
		p.log.Info("cluster restored from the cache", "cluster", entry.given.name(), "file", entry.File.path())
	}
	p.publish(names, nil, true)
	return nil
}

func (p *publisher) nothing() error {
	return fmt.Errorf("no good file of endpoints at %q: want files, or directories with files that end in %q", p.files.paths, extensions)
}

// ask makes run read all files soon, even unchanged ones.
func (p *publisher) ask() {
	p.forget.Store(true)
	p.wake()
}

// wake makes run read changed files and serve the targets' clusters soon.
func (p *publisher) wake() {
	select {
	case p.asked <- time.Now():
	default:
	}
}

func (p *publisher) run(ctx context.Context, w *filewatch.Watcher) {
	p.files.notice = w.Of
	keeping := startKeeping(ctx, p.store)
	defer func() { keeping.end(p.clusters.served) }()
	for {
		keeping.offer(p.clusters.served)
		if _, ok := w.Wait(ctx.Done(), p.asked); !ok {
			return
		}
		if p.forget.Swap(false) {
			p.log.Info("all files are looked at, as asked")
			p.files.forget()
		}
		p.reload()
	}
}

// reload reads the files and serves the clusters of files and targets. It returns the problems by
// path.
func (p *publisher) reload() map[string]error {
	found, problems := p.files.read(slices.Collect(maps.Keys(p.clusters.gave)))
	wrong, unknown := p.follows.into(found, p.clusters.gave)
	changes := p.clusters.update(time.Now(), found)
	// Only now add the rejections to the problems. A file that is rejected because another file has
	// its cluster is nevertheless known.
	partly := unknown || p.unknown(problems)
	for _, o := range slices.Sorted(maps.Keys(changes.rejected)) {
		other := changes.rejected[o]
		problem := fmt.Errorf("%s: cluster %q is that of %s already", o.path(), found[o].name(), other.path())
		if before := problems[o.path()]; before != nil {
			problem = fmt.Errorf("%w; %w", before, problem)
		}
		problems[o.path()] = problem
	}
	p.publish(slices.Concat(changes.added, changes.changed), changes.removed, partly)
	p.gauges.looked(time.Now(), len(p.clusters.served), len(problems)+wrong)
	p.report(changes)
	p.complain(problems)
	return problems
}

// publish sends the updated clusters to the clients that request them, and withdraws the removed
// ones. partly means that clusters may be missing, because the content of some file or target has
// never been known.
func (p *publisher) publish(updated, removed []string, partly bool) {
	clusters := make([]*given, len(updated))
	now := time.Now()
	for i, name := range updated {
		clusters[i] = p.clusters.served[name].cluster
		p.clients.changed(name, clusters[i].endpoints != nil, now)
	}
	for _, name := range removed {
		p.clients.removed(name)
	}
	known := blind
	switch loaded := p.gauges.loaded.Load() || len(updated) > 0; {
	case loaded && partly:
		known = partial
	case loaded:
		known = full
	}
	p.gauges.loaded.Store(known != blind)
	if err := errors.Join(p.resources.set(clusters, removed), p.resources.gate.update(known, clusters, removed)); err != nil {
		p.log.Error("clusters cannot be served", "error", err.Error())
	}
}

// unknown reports whether there is a problem with a file or directory whose content has never been
// known.
func (p *publisher) unknown(problems map[string]error) bool {
	if len(problems) == 0 {
		return false
	}
	known := make(map[string]bool)
	for o := range p.clusters.gave {
		known[o.path()], known[filepath.Dir(o.path())] = true, true
	}
	for path := range problems {
		if !known[path] {
			return true
		}
	}
	return false
}

func (p *publisher) report(c changes) {
	for _, name := range slices.Concat(c.added, c.changed) {
		s := p.clusters.served[name]
		p.log.Info("cluster served", "cluster", name, "file", s.file.path(), "localities", len(s.cluster.endpoints.GetEndpoints()), "endpoints", s.cluster.count())
	}
	for _, name := range c.lost {
		p.log.Warn("cluster has no file any more", "cluster", name, "removal_in", p.clusters.delay.String())
	}
	for _, name := range c.removed {
		p.log.Warn("cluster removed", "cluster", name)
	}
}

func (p *publisher) complain(problems map[string]error) {
	for _, path := range slices.Sorted(maps.Keys(p.said)) {
		if problems[path] == nil {
			delete(p.said, path)
			p.log.Info("rejected no longer", "path", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(problems)) {
		text := problems[path].Error()
		if p.said[path] == text {
			continue
		}
		p.said[path] = text
		switch served := p.servedFrom(path); {
		case len(served) > 0:
			p.log.Error("rejected, what it held before is still served", "clusters", served, "error", text)
		default:
			p.log.Error("rejected, and not served", "error", text)
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
