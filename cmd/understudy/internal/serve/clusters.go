package serve

import (
	"maps"
	"slices"
	"time"
)

// clusters decides which clusters are served, from what is in the files. It does
// nothing itself, and is told the time.
//
// What is removed, waits: a cluster that no file gives any more is served on for
// delay, since a file is often gone for a moment only, while it is renamed or
// written again, and clients take a cluster that is gone for gone for ever.
type clusters struct {
	delay  time.Duration
	served map[string]served // by name
	gave   map[origin]string // the name of the cluster that each gave last
}

// served is a cluster that is served.
type served struct {
	cluster *given
	file    origin    // that gave it
	lost    time.Time // since when no file gives it; zero while one does
}

// changes are what an update has changed: names of clusters, in order.
type changes struct {
	added, changed []string
	lost, removed  []string
	rejected       map[origin]origin // whose cluster is that of another: which
}

func newClusters(delay time.Duration) *clusters {
	return &clusters{delay: delay, served: make(map[string]served), gave: make(map[origin]string)}
}

// restore serves a cluster that a file gave before. Where that had been lost since,
// the file may have given another later.
func (c *clusters) restore(file origin, cluster *given, lost bool) {
	c.served[cluster.name()] = served{cluster: cluster, file: file}
	if _, known := c.gave[file]; !known || !lost {
		c.gave[file] = cluster.name()
	}
}

// update takes what is in the files now: the cluster of each, or nil where it cannot
// be told, which says nothing against the one that the file gave last.
func (c *clusters) update(now time.Time, files map[origin]*given) changes {
	owners, rejected := c.choose(files)
	result := changes{rejected: rejected}
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		file := owners[name]
		before, known := c.served[name]
		cluster := files[file]
		if cluster == nil || cluster.name() != name {
			cluster = before.cluster // the last good one, of a file that gives none or was rejected
		}
		switch {
		case !known:
			result.added = append(result.added, name)
		case !before.cluster.equal(cluster):
			result.changed = append(result.changed, name)
		}
		c.served[name] = served{cluster: cluster, file: file}
		c.gave[file] = name
	}
	for _, name := range slices.Sorted(maps.Keys(c.served)) {
		s := c.served[name]
		if owners[name] != "" {
			continue
		}
		if s.lost.IsZero() {
			s.lost = now
			c.served[name] = s
			result.lost = append(result.lost, name)
		}
		if now.Sub(s.lost) >= c.delay {
			delete(c.served, name)
			result.removed = append(result.removed, name)
		}
	}
	maps.DeleteFunc(c.gave, func(file origin, name string) bool { return c.served[name].file != file })
	return result
}

// choose returns which file each cluster comes from, and the files that lose theirs
// to another, by the name of that one. All files are looked at together, so that two
// of them may exchange their clusters.
func (c *clusters) choose(files map[origin]*given) (owners map[string]origin, rejected map[origin]origin) {
	owners, rejected = make(map[string]origin), make(map[origin]origin)
	paths := slices.Sorted(maps.Keys(files))
	for _, path := range paths {
		if files[path] == nil && c.gives(path) {
			owners[c.gave[path]] = path
		}
	}
	for _, path := range paths {
		if files[path] == nil {
			continue
		}
		name := files[path].name()
		other, taken := owners[name]
		switch {
		case !taken:
			owners[name] = path
		case c.served[name].file == path: // who has a cluster keeps it
			owners[name], rejected[other] = path, path
		default:
			rejected[path] = other
		}
	}
	for _, path := range slices.Sorted(maps.Keys(rejected)) {
		if name := c.gave[path]; owners[name] == "" && c.gives(path) {
			owners[name] = path // and so does the loser keep its own
		}
	}
	return owners, rejected
}

// gives returns whether the cluster that the file gave last is served, and still
// comes from it.
func (c *clusters) gives(file origin) bool {
	name, ok := c.gave[file]
	return ok && c.served[name].file == file
}
