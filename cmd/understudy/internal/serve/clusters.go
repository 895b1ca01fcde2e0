package serve

import (
	"maps"
	"slices"
	"time"
)

// clusters decides which clusters to serve, given the contents of all files. It does no I/O, and
// takes the time as an argument.
//
// When a cluster is in no file any more, it is still served for the duration delay. Files often
// vanish for a moment while they are renamed or rewritten, and clients treat a removed cluster as
// gone.
type clusters struct {
	delay  time.Duration
	served map[string]served // by cluster name
	gave   map[origin]string // name of the cluster that was last served from each file
}

type served struct {
	cluster *given
	file    origin
	lost    time.Time // when the cluster vanished from all files; zero while a file contains it
}

type changes struct {
	added, changed []string
	lost, removed  []string
	rejected       map[origin]origin // maps each rejected file to the file from which its cluster is served
}

func newClusters(delay time.Duration) *clusters {
	return &clusters{delay: delay, served: make(map[string]served), gave: make(map[origin]string)}
}

// restore serves a cluster from the cache. file is the file that the cluster came from. lost means
// that no file contained it any more when the previous process ended.
func (c *clusters) restore(file origin, cluster *given, lost bool) {
	c.served[cluster.name()] = served{cluster: cluster, file: file}
	if _, known := c.gave[file]; !known || !lost {
		c.gave[file] = cluster.name()
	}
}

// update applies the contents of all files. A nil cluster means that the content of its file is
// unknown. Then the cluster that was last served from the file stays.
func (c *clusters) update(now time.Time, files map[origin]*given) changes {
	owners, rejected := c.choose(files)
	result := changes{rejected: rejected}
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		file := owners[name]
		before, known := c.served[name]
		cluster := files[file]
		if cluster == nil || cluster.name() != name {
			cluster = before.cluster // keep the last good cluster of the file
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

// choose decides which file each cluster is served from. rejected maps a file to the other file
// that has the same cluster. All files are considered together, so that two files may swap their
// clusters.
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
		case c.served[name].file == path:
			owners[name], rejected[other] = path, path
		default:
			rejected[path] = other
		}
	}
	for _, path := range slices.Sorted(maps.Keys(rejected)) {
		if name := c.gave[path]; owners[name] == "" && c.gives(path) {
			owners[name] = path
		}
	}
	return owners, rejected
}

func (c *clusters) gives(file origin) bool {
	name, ok := c.gave[file]
	return ok && c.served[name].file == file
}
