//go:build torture

package torture

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

type files struct {
	dir       string
	port      int
	disk      string // directory on a small file system, or ""
	current   string // current content of the files
	faulty    map[string]bool
	timeShift map[string]time.Duration // offset of the modification times
}

func (f *files) path(name string) string {
	return filepath.Join(f.dir, name, clusterName+".yaml")
}

func (f *files) prepare(c content) error {
	f.faulty, f.timeShift = make(map[string]bool), make(map[string]time.Duration)
	for _, name := range append([]string{"disk"}, fileNames...) {
		path := filepath.Join(f.dir, name)
		if f.disk == "" {
			if err := os.MkdirAll(path, 0o700); err != nil {
				return err
			}
			continue
		}
		if err := os.RemoveAll(filepath.Join(f.disk, name)); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(f.disk, name), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join(f.disk, name), path); err != nil {
			return err
		}
	}
	return f.publish(c)
}

func (f *files) publish(c content) error {
	f.current = c.yaml(f.port)
	for _, name := range fileNames {
		if !f.faulty[name] {
			if err := f.replace(name, f.current); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *files) replace(name, text string) error {
	temporary := f.path(name) + ".new"
	err := os.WriteFile(temporary, []byte(text), 0o600)
	if errors.Is(err, syscall.ENOSPC) && f.faulty["disk"] {
		return os.Remove(temporary)
	}
	if err != nil {
		return err
	}
	if f.timeShift[name] != 0 {
		modified := time.Now().Add(f.timeShift[name])
		if err := os.Chtimes(temporary, modified, modified); err != nil {
			return err
		}
	}
	return os.Rename(temporary, f.path(name))
}

// renamedPath returns the path of a directory, and its path while it is renamed.
func (f *files) renamedPath(name string) (from, to string) {
	from = filepath.Join(f.dir, name)
	return from, from + ".gone"
}

func (f *files) filler() string { return filepath.Join(f.disk, "filler") }

func (f *files) begin(ft *fault, name string) error {
	f.faulty[name] = ft.name != "times shifted"
	switch ft.name {
	case "times shifted": // as if the clock had changed, or the file came from a backup
		if f.timeShift[name] = time.Hour; ft.fraction < 0.5 {
			f.timeShift[name] = -time.Hour
		}
		return f.replace(name, f.current)
	case "half written":
		return os.WriteFile(f.path(name), []byte(f.current[:int(ft.fraction*float64(len(f.current)))]), 0o600)
	case "broken content":
		return f.replace(name, f.current+"- {locality: [\n")
	case "directory gone":
		return os.Rename(f.renamedPath(name))
	case "disk full":
		if !f.faulty["disk"] {
			f.faulty["disk"] = true
			if err := fill(f.filler()); err != nil {
				return err
			}
		}
		if ft.fraction < 0.5 { // in half of the cases, write the file in place, which destroys its old content
			return ignoreNoSpace(os.WriteFile(f.path(name), []byte(f.current), 0o600))
		}
		return f.replace(name, f.current)
	}
	return nil
}

func ignoreNoSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return err
}

func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	return errors.Join(ignoreNoSpace(err), file.Close())
}

// end ends a fault, and writes the currently published endpoints.
func (f *files) end(ft *fault, name string) error {
	f.faulty[name], f.timeShift[name] = false, 0
	switch ft.name {
	case "half written":
		return os.WriteFile(f.path(name), []byte(f.current), 0o600)
	case "directory gone":
		from, to := f.renamedPath(name)
		if err := os.Rename(to, from); err != nil {
			return err
		}
	case "disk full":
		if f.faulty["disk"] {
			f.faulty["disk"] = false
			if err := os.Remove(f.filler()); err != nil {
				return err
			}
		}
	}
	return f.replace(name, f.current)
}
