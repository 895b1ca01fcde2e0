package torture

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

type files struct {
	dir   string
	port  int
	disk  string // directory on a small file system, or ""
	now   string // content of the files
	faint map[string]bool
	shift map[string]time.Duration // of the modification times
}

func (f *files) path(name string) string {
	return filepath.Join(f.dir, name, clusterName+".yaml")
}

func (f *files) prepare(c content) error {
	f.faint, f.shift = make(map[string]bool), make(map[string]time.Duration)
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
	f.now = c.yaml(f.port)
	for _, name := range fileNames {
		if !f.faint[name] {
			if err := f.replace(name, f.now); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *files) replace(name, text string) error {
	temporary := f.path(name) + ".new"
	err := os.WriteFile(temporary, []byte(text), 0o600)
	if errors.Is(err, syscall.ENOSPC) && f.faint["disk"] {
		return os.Remove(temporary)
	}
	if err != nil {
		return err
	}
	if f.shift[name] != 0 {
		at := time.Now().Add(f.shift[name])
		if err := os.Chtimes(temporary, at, at); err != nil {
			return err
		}
	}
	return os.Rename(temporary, f.path(name))
}

// gone returns the path of a directory, and its path while it is renamed.
func (f *files) gone(name string) (from, to string) {
	from = filepath.Join(f.dir, name)
	return from, from + ".gone"
}

func (f *files) filler() string { return filepath.Join(f.disk, "filler") }

func (f *files) begin(of *fault, name string) error {
	f.faint[name] = of.name != "times shifted"
	switch of.name {
	case "times shifted": // as after a change of the clock, or from a backup
		if f.shift[name] = time.Hour; of.part < 0.5 {
			f.shift[name] = -time.Hour
		}
		return f.replace(name, f.now)
	case "half written":
		return os.WriteFile(f.path(name), []byte(f.now[:int(of.part*float64(len(f.now)))]), 0o600)
	case "broken content":
		return f.replace(name, f.now+"- {locality: [\n")
	case "directory gone":
		return os.Rename(f.gone(name))
	case "disk full":
		if !f.faint["disk"] {
			f.faint["disk"] = true
			if err := fill(f.filler()); err != nil {
				return err
			}
		}
		if of.part < 0.5 { // in half of the cases, the file is written in place, and its old content is lost
			return truncated(os.WriteFile(f.path(name), []byte(f.now), 0o600))
		}
		return f.replace(name, f.now)
	}
	return nil
}

func truncated(err error) error {
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
	return errors.Join(truncated(err), file.Close())
}

// end ends a fault, and writes the endpoints that are published now.
func (f *files) end(of *fault, name string) error {
	f.faint[name], f.shift[name] = false, 0
	switch of.name {
	case "half written":
		return os.WriteFile(f.path(name), []byte(f.now), 0o600)
	case "directory gone":
		from, to := f.gone(name)
		if err := os.Rename(to, from); err != nil {
			return err
		}
	case "disk full":
		if f.faint["disk"] {
			f.faint["disk"] = false
			if err := os.Remove(f.filler()); err != nil {
				return err
			}
		}
	}
	return f.replace(name, f.now)
}
