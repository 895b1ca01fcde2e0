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
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

var extensions = []string{".yaml", ".yml", ".json"}

type files struct {
	paths    []string
	log      *slog.Logger
	byPath   map[string]*servedFile
	readOnce bool
	dirInfo  map[string]fs.FileInfo // what each directory looked like when it last had an endpoints file
}

type servedFile struct {
	*filewatch.File
	last  reading
	notes string // which fields aren't sent to clients
}

// emptyClusters is the problem of a file in which some clusters have no endpoints. We still serve
// the rest of them.
type emptyClusters struct{ error }

func newFiles(paths []string, log *slog.Logger) *files {
	f := &files{log: log, byPath: make(map[string]*servedFile), dirInfo: make(map[string]fs.FileInfo)}
	for _, path := range paths {
		f.paths = append(f.paths, filepath.Clean(path))
	}
	return f
}

func (f *files) covers(source string) bool {
	return slices.Contains(f.paths, source) || slices.Contains(f.paths, filepath.Dir(source))
}

// read returns the content of each file. The keys of hadFiles are the directories that
// have files whose clusters we're serving.
func (f *files) read(hadFiles map[string][]string) (all []reading) {
	read := make(map[string]bool)
	for _, path := range f.paths {
		list, err := f.list(path, hadFiles)
		if err != nil {
			all = append(all, reading{source: path, problem: err})
		}
		for _, file := range list {
			read[file] = true
			all = append(all, f.load(file))
		}
	}
	maps.DeleteFunc(f.byPath, func(path string, _ *servedFile) bool { return !read[path] })
	f.readOnce = true
	return all
}

func (f *files) list(path string, hadFiles map[string][]string) ([]string, error) {
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
	// An unmounted file system leaves behind a different, empty directory. That doesn't mean that
	// anyone has removed the files.
	if before := f.dirInfo[path]; len(list) == 0 && hadFiles[path] != nil && (before == nil || !os.SameFile(before, info)) {
		return nil, fmt.Errorf("%s: is a different directory than before, and has no endpoints files", path)
	}
	if len(list) > 0 {
		f.dirInfo[path] = info
	}
	return list, nil
}

func (f *files) load(path string) reading {
	// After startup, we wait until a new file looks complete, since some process may still be
	// writing it.
	file := f.byPath[path]
	if file == nil {
		file = &servedFile{File: filewatch.NewFile(path), last: reading{source: path}}
		f.byPath[path] = file
	}
	due, err := file.Look()
	if err != nil {
		f.log.Warn("not read yet", "error", err.Error())
	}
	if !due && f.readOnce {
		return file.last
	}
	doc, empty, unread, err := clusterfile.LoadEach(path)
	if _, invalid := errors.AsType[*messages.Invalid](err); err != nil && !invalid {
		file.Again() // it may work next time
	} else if !file.Read() && f.readOnce {
		return file.last
	}
	if file.last = (reading{source: path, problem: err}); err != nil {
		return file.last
	}
	notes := ""
	if unread != nil {
		notes = unread.Error()
	}
	if notes != file.notes && notes != "" {
		f.log.Warn("some fields are not sent to clients", "notes", notes)
	}
	file.notes = notes
	file.last.clusters = clustersOf(doc)
	if empty != nil {
		file.last.problem = emptyClusters{empty}
	}
	return file.last
}

// clustersOf returns nil for clusters without endpoints. If the file is just a single cluster like
// that, there are no clusters at all.
func clustersOf(doc *clusterfile.Document) map[string]*clusterConfig {
	all := make(map[string]*clusterConfig)
	if name := doc.Names()[0]; doc.Clusters == nil && doc.Find(name).NoEndpoints != nil {
		return nil
	} else if doc.Clusters == nil {
		all[name] = newStatic(doc.Endpoints)
	}
	for _, c := range doc.Clusters {
		if all[c.GetName()] = nil; doc.Find(c.GetName()).NoEndpoints == nil {
			all[c.GetName()] = newClusterConfig(c)
		}
	}
	return all
}
