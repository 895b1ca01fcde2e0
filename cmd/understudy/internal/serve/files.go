package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/discovery/file"
)

// extensions are those of the files that are served out of a directory.
var extensions = []string{".yaml", ".yml", ".json"}

// files is what the paths on the command line stand for, now. It is used by one
// goroutine at a time.
type files struct {
	paths []string
	log   *slog.Logger

	// By path of the file:
	served   map[string]*endpointv3.ClusterLoadAssignment // the last good one
	seen     map[string]stamp                             // when it was loaded, if it was good
	problems map[string]string                            // what was logged last, if it was not
}

// stamp tells whether a file has changed since it was loaded.
type stamp struct {
	info fs.FileInfo
	at   time.Time // before it was loaded
}

// coarse is more than the step of any file system's clock: two changes within one
// step cannot be told apart.
const coarse = 2 * time.Second

// same reports whether info is of the file that was loaded.
func (s stamp) same(info fs.FileInfo) bool {
	return s.info != nil && os.SameFile(s.info, info) && s.info.Size() == info.Size() &&
		s.info.ModTime().Equal(info.ModTime()) && s.at.Sub(info.ModTime()) > coarse
}

// newFiles checks that there is something behind each path.
func newFiles(paths []string, log *slog.Logger) (*files, error) {
	if len(paths) == 0 {
		return nil, errors.New("nothing to serve: want files of endpoints, or directories of them")
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("nothing to serve: %w", err)
		}
	}
	return &files{
		paths:    paths,
		log:      log,
		served:   make(map[string]*endpointv3.ClusterLoadAssignment),
		seen:     make(map[string]stamp),
		problems: make(map[string]string),
	}, nil
}

// directories returns those in which changes matter.
func (f *files) directories() []string {
	var all []string
	for _, path := range f.paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			path = filepath.Dir(path)
		}
		all = append(all, path)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// list returns the files behind the paths, each once.
func (f *files) list() []string {
	var all []string
	for _, path := range f.paths {
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			all = append(all, filepath.Clean(path)) // one that is gone is said to be so when it is loaded
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			f.log.Error("directory cannot be read", "error", err.Error())
			continue
		}
		for _, entry := range entries {
			if slices.Contains(extensions, filepath.Ext(entry.Name())) && !entry.IsDir() {
				all = append(all, filepath.Join(path, entry.Name()))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// load serves all files, or says what is wrong with the first that is not good.
func (f *files) load(r *resources) error {
	list := f.list()
	if len(list) == 0 {
		return fmt.Errorf("nothing to serve: no file with the extension %q", extensions)
	}
	for _, path := range list {
		if err := f.take(path, r); err != nil {
			return err
		}
	}
	return nil
}

// reload serves what has changed. A file that is not good any more changes nothing.
func (f *files) reload(r *resources) {
	list := f.list()
	for _, path := range slices.Sorted(maps.Keys(f.served)) {
		if !slices.Contains(list, path) {
			f.drop(path, r)
		}
	}
	for _, path := range list {
		if !f.changed(path) {
			continue
		}
		if err := f.take(path, r); err != nil {
			f.refuse(path, err.Error())
			continue
		}
		delete(f.problems, path)
	}
}

// refuse logs what is wrong with a file, once. The file is loaded again the next
// time, changed or not, since the fault may lie with another one.
func (f *files) refuse(path, problem string) {
	delete(f.seen, path)
	if f.problems[path] == problem {
		return
	}
	f.problems[path] = problem
	if last := f.served[path]; last != nil {
		f.log.Error("edit refused, the last good one is still served", "cluster", last.GetClusterName(), "error", problem)
		return
	}
	f.log.Error("file refused", "error", problem)
}

// changed reports whether the file has to be loaded, and assumes that it will be.
func (f *files) changed(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		delete(f.seen, path)
		return true
	}
	if f.seen[path].same(info) {
		return false
	}
	f.seen[path] = stamp{info, time.Now()}
	return true
}

// take loads one file and serves it if it is new or has changed.
func (f *files) take(path string, r *resources) error {
	cluster, err := file.Load(path)
	if err != nil {
		return err
	}
	name := cluster.GetClusterName()
	for other, its := range f.served {
		if other != path && its.GetClusterName() == name {
			return fmt.Errorf("%s: cluster %q is that of %s already", path, name, other)
		}
	}
	before := f.served[path]
	switch {
	case before == nil:
		err = r.add(cluster)
	case before.GetClusterName() != name:
		err = errors.Join(r.add(cluster), r.remove(before.GetClusterName()))
	case proto.Equal(before, cluster):
		return nil
	default:
		err = r.update(cluster)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.served[path] = cluster
	f.log.Info("cluster served", "cluster", name, "file", path, "localities", len(cluster.GetEndpoints()), "endpoints", count(cluster))
	return nil
}

// drop serves a file no longer that has left its directory.
func (f *files) drop(path string, r *resources) {
	name := f.served[path].GetClusterName()
	delete(f.served, path)
	delete(f.seen, path)
	delete(f.problems, path)
	if err := r.remove(name); err != nil {
		f.log.Error("cluster cannot be removed", "cluster", name, "error", err.Error())
		return
	}
	f.log.Info("cluster removed with its file", "cluster", name, "file", path)
}

func count(cluster *endpointv3.ClusterLoadAssignment) int {
	n := 0
	for _, locality := range cluster.GetEndpoints() {
		n += len(locality.GetLbEndpoints())
	}
	return n
}
