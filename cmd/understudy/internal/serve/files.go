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

	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/filewatch"
)

var extensions = []string{".yaml", ".yml", ".json"}

// files reads the files and directories of the command line. Only one goroutine at a time may use
// it.
type files struct {
	paths []string
	log   *slog.Logger

	loaded map[string]content
	looks  map[string]*filewatch.File // by path
	begun  bool

	// notice returns the changes noticed in a file since it was last read.
	notice func(path string) filewatch.Notice
	held   map[string]fs.FileInfo // each directory as it was when it last held an endpoints file, by path
}

type content struct {
	clusters map[origin]*given // nil if the file is invalid
	err      error
}

func newFiles(paths []string, log *slog.Logger, others bool) (*files, error) {
	if len(paths) == 0 && !others {
		return nil, errors.New("nothing to serve: want files of endpoints, or directories of them, as in: understudy serve endpoints/; or --from NAME=TARGET")
	}
	f := &files{log: log, loaded: make(map[string]content), looks: make(map[string]*filewatch.File), notice: func(string) filewatch.Notice { return filewatch.Looked }, held: make(map[string]fs.FileInfo)}
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

func (f *files) exist() error {
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

// forget makes the next read include unchanged files. A file that cannot be read then keeps its
// known content.
func (f *files) forget() {
	for _, file := range f.looks {
		file.Again()
	}
}

// read returns the clusters in all files, and the problems by path. A cluster is nil if its content
// is unknown, because its file is invalid or its directory cannot be read. known lists the clusters
// that were found earlier.
func (f *files) read(known []origin) (found map[origin]*given, problems map[string]error) {
	found, problems = make(map[origin]*given), make(map[string]error)
	read := make(map[string]bool)
	for _, path := range f.paths {
		list, err := f.list(path, known)
		if err != nil {
			problems[path] = err
			f.unknown(found, known, func(file string) bool { return within(file, path) })
		}
		for _, file := range list {
			c, isKnown := f.load(file)
			read[file] = true
			if c.err != nil {
				problems[file] = c.err
			}
			if c.err != nil || !isKnown {
				f.unknown(found, known, func(other string) bool { return other == file })
			}
			maps.Copy(found, c.clusters)
		}
	}
	maps.DeleteFunc(f.loaded, func(path string, _ content) bool { return !read[path] })
	maps.DeleteFunc(f.looks, func(path string, _ *filewatch.File) bool { return !read[path] })
	f.begun = true
	return found, problems
}

func (f *files) unknown(found map[origin]*given, known []origin, file func(string) bool) {
	for _, o := range known {
		if _, elsewhere := found[o]; !elsewhere && file(o.path()) {
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
		f.held[path] = info
		return list, nil
	}
	// When a file system is unmounted, its mount point is another, empty directory. This does not
	// mean that the files have been removed.
	held := slices.ContainsFunc(known, func(o origin) bool { return filepath.Dir(o.path()) == path })
	if before := f.held[path]; held && (before == nil || !os.SameFile(before, info)) {
		return nil, fmt.Errorf("%s: is another directory than before, with no file of endpoints in it", path)
	}
	return nil, nil
}

// load returns the content of a file, and whether it is known. After startup, a new file is unknown
// until it seems complete, because a process may still be writing it.
func (f *files) load(path string) (c content, known bool) {
	look := f.looks[path]
	if look == nil {
		look = filewatch.NewFile(path)
		f.looks[path] = look
	}
	state := look.Look(f.notice(path))
	if state == filewatch.Unfinished {
		if err := look.Restless(); err != nil {
			f.log.Warn("not read yet", "error", err.Error())
		}
	}
	if c, known = f.loaded[path]; state != filewatch.Due && f.begun {
		return c, known
	}
	doc, err := clusterfile.Load(path)
	if _, wrong := errors.AsType[*clusterfile.Error](err); err != nil && !wrong {
		look.Again() // the failure may be temporary
	} else if !look.Read() && f.begun {
		return c, known
	}
	if c = (content{err: err}); err == nil {
		c.clusters = clustersOf(path, doc)
	}
	f.loaded[path] = c
	return c, true
}
