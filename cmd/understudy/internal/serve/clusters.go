package serve

import (
	"maps"
	"slices"
	"time"
)

// clusters decides which clusters to serve, given the contents of all files. It does no I/O, and
// takes the time as an argument.
//
// A cluster that is no longer in any file is still served for the duration delay. Files often
// vanish for a moment while they are renamed or rewritten, and clients stop using a cluster that is
// removed.
type clusters struct {
	delay         time.Duration
	served        map[string]servedCluster // by cluster name
	clusterByFile map[origin]string        // name of the cluster that was last served from each file
}

type servedCluster struct {
	cluster      *clusterConfig
	file         origin
	missingSince time.Time // when the cluster vanished from all files; zero while a file contains it
}

type changes struct {
	added, changed   []string
	missing, removed []string
	rejected         map[origin]origin // maps each rejected file to the file from which its cluster is served
}

func newClusters(delay time.Duration) *clusters {
	return &clusters{delay: delay, served: make(map[string]servedCluster), clusterByFile: make(map[origin]string)}
}

// restore serves a cluster from the cache. file is the file that the cluster came from. wasMissing
// means that no file contained the cluster when the previous process ended.
func (c *clusters) restore(file origin, cluster *clusterConfig, wasMissing bool) {
	c.served[cluster.name()] = servedCluster{cluster: cluster, file: file}
	if _, known := c.clusterByFile[file]; !known || !wasMissing {
		c.clusterByFile[file] = cluster.name()
	}
}

// update applies the contents of all files. A nil cluster means that the content of its file is
// unknown. In this case, the cluster that was last served from the file is still served.
func (c *clusters) update(now time.Time, files map[origin]*clusterConfig) changes {
	owners, rejected := c.chooseFiles(files)
	result := changes{rejected: rejected}
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		file := owners[name]
		before, known := c.served[name]
		cluster := files[file]
		if cluster == nil || cluster.name() != name {
			cluster = before.cluster // keep the last valid cluster of the file
		}
		switch {
		case !known:
			result.added = append(result.added, name)
		case !before.cluster.equal(cluster):
			result.changed = append(result.changed, name)
		}
		c.served[name] = servedCluster{cluster: cluster, file: file}
		c.clusterByFile[file] = name
	}
	for _, name := range slices.Sorted(maps.Keys(c.served)) {
		s := c.served[name]
		if owners[name] != "" {
			continue
		}
		if s.missingSince.IsZero() {
			s.missingSince = now
			c.served[name] = s
			result.missing = append(result.missing, name)
		}
		if now.Sub(s.missingSince) >= c.delay {
			delete(c.served, name)
			result.removed = append(result.removed, name)
		}
	}
	maps.DeleteFunc(c.clusterByFile, func(file origin, name string) bool { return c.served[name].file != file })
	return result
}

// chooseFiles decides which file each cluster is served from. rejected maps a file to the other
// file that has the same cluster. All files are considered together, so that two files may swap
// their clusters.
func (c *clusters) chooseFiles(files map[origin]*clusterConfig) (owners map[string]origin, rejected map[origin]origin) {
	owners, rejected = make(map[string]origin), make(map[origin]origin)
	paths := slices.Sorted(maps.Keys(files))
	for _, path := range paths {
		if files[path] == nil && c.servesFrom(path) {
			owners[c.clusterByFile[path]] = path
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
		if name := c.clusterByFile[path]; owners[name] == "" && c.servesFrom(path) {
			owners[name] = path
		}
	}
	return owners, rejected
}

func (c *clusters) servesFrom(file origin) bool {
	name, ok := c.clusterByFile[file]
	return ok && c.served[name].file == file
}
