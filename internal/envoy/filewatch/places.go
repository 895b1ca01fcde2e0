package filewatch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is the maximum number of symbolic links in a path, as in Linux.
const maxLinks = 40

// watchedDirs maps directories to the entries whose changes may affect a watched path. The keys are
// absolute paths without symbolic links.
type watchedDirs map[string]*watchedDir

type watchedDir struct {
	info  fs.FileInfo
	all   bool
	names map[string]bool // the relevant entries, unless all is set
}

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
		if !p.add(dir, name) {
			return
		}
		next := filepath.Join(dir, name)
		info, err := os.Lstat(next)
		if err != nil {
			return
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			dir = next
			continue
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

// add adds an entry of dir, or all entries if name is "". It returns false if dir is not a
// directory.
func (p watchedDirs) add(dir, name string) bool {
	d := p[dir]
	if d == nil {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			return false
		}
		d = &watchedDir{info: info, names: make(map[string]bool)}
		p[dir] = d
	}
	if name == "" {
		d.all = true
	} else {
		d.names[name] = true
	}
	return true
}

func (p *watchedDir) sameDir(other *watchedDir) bool {
	return p != nil && os.SameFile(p.info, other.info)
}

func split(path string) []string { return strings.Split(path, string(filepath.Separator)) }
