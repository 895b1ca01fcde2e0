package filewatch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks limits the symbolic links in a path, as Linux does.
const maxLinks = 40

// places maps each directory to those of its entries whose changes may affect a watched path. The
// keys are absolute paths without symbolic links.
type places map[string]*place

type place struct {
	info  fs.FileInfo
	all   bool
	names map[string]bool // the relevant entries, unless all is set
}

// find returns the places that affect the paths. For example, if /a/link is a symbolic link to
// /b/dir, the places of /a/link/f are / (entries a and b), /a (link), /b (dir) and /b/dir (f).
func find(paths []string) places {
	found := make(places)
	for _, path := range paths {
		if path, err := filepath.Abs(path); err == nil {
			found.walk(path)
		}
	}
	return found
}

func (p places) walk(path string) {
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
func (p places) add(dir, name string) bool {
	at := p[dir]
	if at == nil {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			return false
		}
		at = &place{info: info, names: make(map[string]bool)}
		p[dir] = at
	}
	if name == "" {
		at.all = true
	} else {
		at.names[name] = true
	}
	return true
}

func (p *place) same(other *place) bool { return p != nil && os.SameFile(p.info, other.info) }

func split(path string) []string { return strings.Split(path, string(filepath.Separator)) }
