// Package modproxy writes the public modules of the repository as a release would publish them.
package modproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Root is the path of the root module.
const Root = "github.com/understudy-lb/understudy"

// Write writes the public modules of the repository to a directory that works with
// GOPROXY=file://DIRECTORY. As in a release, files of nested modules are left out, and the go.mod
// files require the root module at the same version.
func Write(repository, version, directory string) error {
	for _, dir := range []string{"", "cmd/understudy"} {
		if err := release(repository, dir, version, directory); err != nil {
			return fmt.Errorf("module %q: %w", dir, err)
		}
	}
	return nil
}

func release(repository, dir, version, proxy string) error {
	from := filepath.Join(repository, dir)
	goMod, err := releasedGoMod(filepath.Join(from, "go.mod"), version)
	if err != nil {
		return err
	}
	files, err := filesIn(from, goMod)
	if err != nil {
		return err
	}
	var content bytes.Buffer
	m := module.Version{Path: strings.TrimSuffix(Root+"/"+dir, "/"), Version: version}
	if err := zip.Create(&content, m, files); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC()})
	if err != nil {
		return err
	}
	to := filepath.Join(proxy, m.Path, "@v")
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": goMod, version + ".zip": content.Bytes()} {
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func releasedGoMod(path, version string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse(path, data, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range f.Require {
		if r.Mod.Path == Root {
			if err := f.AddRequire(Root, version); err != nil {
				return nil, err
			}
		}
	}
	return f.Format()
}

// filesIn returns the files that git tracks or would add. goMod is the new content of go.mod.
func filesIn(dir string, goMod []byte) (files []zip.File, err error) {
	command := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Dir = dir
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", command.Args, err)
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		f := file{dir: dir, path: path}
		if path == "go.mod" {
			f.content = goMod
		}
		if _, err := f.Lstat(); !errors.Is(err, fs.ErrNotExist) { // git also lists deleted files
			files = append(files, f)
		}
	}
	return files, nil
}

type file struct {
	dir, path string
	content   []byte // nil if it's on disk
}

func (f file) Path() string { return f.path }

func (f file) Lstat() (fs.FileInfo, error) {
	info, err := os.Lstat(filepath.Join(f.dir, f.path))
	if err == nil && f.content != nil {
		return resizedInfo{info, int64(len(f.content))}, nil
	}
	return info, err
}

func (f file) Open() (io.ReadCloser, error) {
	if f.content != nil {
		return io.NopCloser(bytes.NewReader(f.content)), nil
	}
	return os.Open(filepath.Join(f.dir, f.path))
}

type resizedInfo struct {
	fs.FileInfo
	size int64
}

func (s resizedInfo) Size() int64 { return s.size }
