package filewatch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is the maximum number of symbolic links in a path, as in Linux.
const maxLinks = 40

// watchedDirs has the directories and the names of their entries whose changes may affect a watched
// path. The keys are absolute paths without symbolic links. The name "" means all entries.
type watchedDirs map[string]map[string]bool

// findDirs returns the directories and entries that affect the paths. For example, if /a/link is a
// symbolic link to /b/dir, /a/link/f depends on / (entries a and b), /a (link), /b (dir) and /b/dir
// (f).
func findDirs(paths []string) watchedDirs {
	dirs := make(watchedDirs)
	for _, path := range paths {
		if path, err := filepath.Abs(path); err == nil {
			dirs.walk(path)
		}
	}
	return dirs
}

func (p watchedDirs) walk(path string) {
	root := filepath.VolumeName(path) + string(filepath.Separator)
	dir, pending := root, split(path[len(root):])
	for links := 0; len(pending) > 0; {
		name := pending[0]
		pending = pending[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			dir = filepath.Dir(dir)
			continue
		}
		p.add(dir, name)
		next := filepath.Join(dir, name)
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			return
		case info.IsDir():
			dir = next
			continue
		case info.Mode()&fs.ModeSymlink == 0:
			return
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return
		}
		if filepath.IsAbs(target) {
			dir = root
		}
		pending = append(split(target), pending...)
	}
	p.add(dir, "")
}

func (p watchedDirs) add(dir, name string) {
	if p[dir] == nil {
		p[dir] = make(map[string]bool)
	}
	p[dir][name] = true
}

// concern reports whether a change at a path may affect the watched paths.
func (p watchedDirs) concern(path string) bool {
	dir := p[filepath.Dir(path)]
	return p[path] != nil || dir[""] || dir[filepath.Base(path)]
}

func split(path string) []string { return strings.Split(path, string(filepath.Separator)) }
