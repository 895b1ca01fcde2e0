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
	"time"

	"github.com/understudy-lb/understudy/discovery/file"
	"github.com/understudy-lb/understudy/internal/filewatch"
)

// extensions are those of the files that are served out of a directory.
var extensions = []string{".yaml", ".yml", ".json"}

// files reads what the paths on the command line stand for. It is used by one
// goroutine at a time.
type files struct {
	paths []string
	log   *slog.Logger

	loaded map[string]content // by path of the file
	rests  map[string]*filewatch.Rest
	begun  bool // all files were looked at once

	// notice returns what was noticed of the files of a name since they were read last.
	notice func(name string) filewatch.Notice
	held   map[string]fs.FileInfo // by path: the directory that last held a file of endpoints
}

// content is what was found in a file.
type content struct {
	stamp    stamp
	clusters map[origin]*given // nil if the file is not good
	err      error

	unfinished bool // it is not known yet, because the file is being written
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

func newFiles(paths []string, log *slog.Logger) (*files, error) {
	if len(paths) == 0 {
		return nil, errors.New("nothing to serve: want files of endpoints, or directories of them, as in: understudy serve endpoints/")
	}
	f := &files{log: log, loaded: make(map[string]content), rests: make(map[string]*filewatch.Rest), notice: func(string) filewatch.Notice { return filewatch.Looked }, held: make(map[string]fs.FileInfo)}
	for _, path := range paths {
		f.paths = append(f.paths, filepath.Clean(path))
	}
	return f, nil
}

// covers returns whether the file is one of the paths, or in one of them.
func (f *files) covers(path string) bool {
	return slices.ContainsFunc(f.paths, func(p string) bool { return within(path, p) })
}

// within returns whether the file is the path, or in the directory at it.
func within(file, path string) bool { return file == path || filepath.Dir(file) == path }

// exist says what is wrong where there is nothing at any of the paths.
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

// forget has all files read again, changed or not. Until then it is known what is in them.
func (f *files) forget() {
	for path, c := range f.loaded {
		c.stamp = stamp{}
		f.loaded[path] = c
	}
}

// read returns the clusters in all files, and what is wrong, by path. Those of which
// nothing can be learnt are nil: what was known to be in a file that is not good, and,
// where a directory cannot be read, in each file that is known to have been in it.
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
			c := f.load(file)
			read[file] = true
			if c.err != nil {
				problems[file] = c.err
			}
			if c.err != nil || c.unfinished {
				f.unknown(found, known, func(other string) bool { return other == file })
			}
			maps.Copy(found, c.clusters)
		}
	}
	maps.DeleteFunc(f.loaded, func(path string, _ content) bool { return !read[path] })
	maps.DeleteFunc(f.rests, func(path string, _ *filewatch.Rest) bool { return !read[path] })
	f.begun = true
	return found, problems
}

// unknown notes that nothing can be learnt of what is known to have been in these files.
func (f *files) unknown(found map[origin]*given, known []origin, file func(string) bool) {
	for _, o := range known {
		if _, elsewhere := found[o]; !elsewhere && file(o.path()) {
			found[o] = nil
		}
	}
}

// list returns the files at path: itself, or those in the directory that it is.
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
	// Where a file system is unmounted, the empty directory that it was mounted on
	// appears.
	held := slices.ContainsFunc(known, func(o origin) bool { return filepath.Dir(o.path()) == path })
	if before := f.held[path]; held && (before == nil || !os.SameFile(before, info)) {
		return nil, fmt.Errorf("%s: is another directory than before, with no file of endpoints in it", path)
	}
	return nil, nil
}

// load returns what is in the file, which it reads if it may have changed.
func (f *files) load(path string) content {
	before := f.loaded[path]
	info, err := os.Stat(path)
	if err == nil && before.stamp.same(info) {
		return before
	}
	if err == nil && info.Mode().IsRegular() && !f.complete(path, info) {
		before.stamp, before.unfinished = stamp{}, before.clusters == nil
		return before
	}
	c := content{stamp: stamp{info, time.Now()}}
	doc, problem := file.LoadDocument(path)
	if c.err = problem; problem == nil {
		c.clusters = clustersOf(path, doc)
	}
	if _, wrong := errors.AsType[*file.Error](c.err); err != nil || c.err != nil && !wrong {
		c.stamp = stamp{} // it could not be read: whatever the reason, it may be over soon
	}
	f.loaded[path] = c
	return c
}

// complete reports whether a file may be read: it is not being written. When the server starts
// each is read as it is, because nothing else is known of it.
func (f *files) complete(path string, info fs.FileInfo) bool {
	r := f.rests[path]
	if r == nil {
		r = new(filewatch.Rest)
		f.rests[path] = r
	}
	return r.Look(path, info, f.notice(filepath.Base(path))) == 0 || !f.begun
}
