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
	"strings"

	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy/filewatch"
)

var extensions = []string{".yaml", ".yml", ".json"}

// files reads the files and directories that are given on the command line. It is not safe for
// concurrent use.
type files struct {
	paths []string
	log   *slog.Logger

	loaded   map[string]content
	watched  map[string]*filewatch.File // by path
	readOnce bool

	// notice returns which change of a file has been noticed since it was last read.
	notice  func(path string) filewatch.Notice
	dirInfo map[string]fs.FileInfo // by path: info of a directory from when it last held an endpoints file
}

type content struct {
	clusters map[origin]*clusterConfig // nil if the file is invalid
	err      error                     // an emptyClusters if the rest of the file is valid
	notes    error                     // the fields that are not sent to clients, or nil
}

// emptyClusters is the problem of a file in which some clusters list no endpoint. The other clusters
// are served.
type emptyClusters struct{ error }

func (e emptyClusters) Unwrap() error { return e.error }

func newFiles(paths []string, log *slog.Logger, hasTargets bool) (*files, error) {
	if len(paths) == 0 && !hasTargets {
		return nil, errors.New("nothing to serve: want endpoints files, or directories of them, as in: understudy serve endpoints/; or --from NAME=TARGET")
	}
	f := &files{log: log, loaded: make(map[string]content), watched: make(map[string]*filewatch.File), notice: func(string) filewatch.Notice { return filewatch.Looked }, dirInfo: make(map[string]fs.FileInfo)}
	for _, path := range paths {
		f.paths = append(f.paths, filepath.Clean(path))
	}
	return f, nil
}

func (f *files) covers(path string) bool {
	return slices.ContainsFunc(f.paths, func(p string) bool { return within(path, p) })
}

// within reports whether path is the file itself or its directory.
func within(file, path string) bool { return file == path || filepath.Dir(file) == path }

func (f *files) checkExist() error {
	var missing error
	for _, path := range f.paths {
		_, err := os.Stat(path)
		if err == nil {
			return nil
		}
		missing = errors.Join(missing, err)
	}
	return missing
}

// rereadAll makes the next read include unchanged files. If a file cannot be read then, its
// previous content remains in use.
func (f *files) rereadAll() {
	for _, file := range f.watched {
		file.Again()
	}
}

// read returns the clusters in all files, and the problems by path. A cluster is nil if its content
// is unknown, because it lists no endpoint, its file is invalid or its directory cannot be read. known lists the clusters
// that were found earlier.
func (f *files) read(known []origin) (found map[origin]*clusterConfig, problems map[string]error) {
	found, problems = make(map[origin]*clusterConfig), make(map[string]error)
	read := make(map[string]bool)
	for _, path := range f.paths {
		list, err := f.list(path, known)
		if err != nil {
			problems[path] = err
			f.markUnknown(found, known, func(file string) bool { return within(file, path) })
		}
		for _, file := range list {
			c, isKnown := f.load(file)
			read[file] = true
			if c.err != nil {
				problems[file] = c.err
			}
			if c.clusters == nil || !isKnown {
				f.markUnknown(found, known, func(other string) bool { return other == file })
			}
			maps.Copy(found, c.clusters)
		}
	}
	maps.DeleteFunc(f.loaded, func(path string, _ content) bool { return !read[path] })
	maps.DeleteFunc(f.watched, func(path string, _ *filewatch.File) bool { return !read[path] })
	f.readOnce = true
	return found, problems
}

func (f *files) markUnknown(found map[origin]*clusterConfig, known []origin, inFile func(string) bool) {
	for _, o := range known {
		if _, exists := found[o]; !exists && inFile(o.path()) {
			found[o] = nil
		}
	}
}

// list returns the path itself if it is a file, or else the endpoints files in the directory.
func (f *files) list(path string, known []origin) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, entry := range entries {
		name := entry.Name()
		if slices.Contains(extensions, filepath.Ext(name)) && !strings.HasPrefix(name, ".") && !entry.IsDir() {
			list = append(list, filepath.Join(path, name))
		}
	}
	if len(list) > 0 {
		f.dirInfo[path] = info
		return list, nil
	}
	// When a file system is unmounted, its mount point is another, empty directory. This does not
	// mean that the files have been removed.
	hadFiles := slices.ContainsFunc(known, func(o origin) bool { return filepath.Dir(o.path()) == path })
	if before := f.dirInfo[path]; hadFiles && (before == nil || !os.SameFile(before, info)) {
		return nil, fmt.Errorf("%s: is a different directory than before, and has no endpoints files", path)
	}
	return nil, nil
}

// load returns the content of a file, and whether it is known. After startup, a new file is unknown
// until it seems complete, because a process may still be writing it.
func (f *files) load(path string) (c content, known bool) {
	file := f.watched[path]
	if file == nil {
		file = filewatch.NewFile(path)
		f.watched[path] = file
	}
	state := file.Look(f.notice(path))
	if state == filewatch.Unfinished {
		if err := file.CheckUnfinished(); err != nil {
			f.log.Warn("not read yet", "error", err.Error())
		}
	}
	if c, known = f.loaded[path]; state != filewatch.Due && f.readOnce {
		return c, known
	}
	doc, empty, err := clusterfile.LoadEach(path)
	if _, invalid := errors.AsType[*clusterfile.Error](err); err != nil && !invalid {
		file.Again() // the failure may be temporary
	} else if !file.Read() && f.readOnce {
		return c, known
	}
	if c = (content{err: err}); err == nil {
		c.notes = doc.RemoveUnread()
		c.clusters = clustersOf(path, doc, empty)
	}
	if empty != nil {
		c.err = emptyClusters{empty.Err}
	}
	if c.notes != nil && fmt.Sprint(c.notes) != fmt.Sprint(f.loaded[path].notes) {
		f.log.Warn("some fields are not sent to clients", "notes", c.notes.Error())
	}
	f.loaded[path] = c
	return c, true
}
