package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/understudy-lb/understudy/tools/modproxy"
)

const version = "v0.1.0"

// world is the environment of the pages' commands: the released modules, and understudy on the
// PATH.
type world struct {
	dir string // the pages write only below it
	env []string
}

// newWorld writes the modules of the repository to dir as version v0.1.0, and installs the command
// from them. The machine's own module cache must never get this v0.1.0, so the pages have a
// separate one that shares all other modules with it. Builds use -trimpath, because otherwise the
// build cache would depend on the directory of the module cache.
func newWorld(ctx context.Context, repository, dir string) (*world, error) {
	goEnv, err := goEnv(ctx)
	if err != nil {
		return nil, err
	}
	proxy, modules, bin := filepath.Join(dir, "proxy"), filepath.Join(dir, "modules"), filepath.Join(dir, "bin")
	if err := modproxy.Write(repository, version, proxy); err != nil {
		return nil, err
	}
	if err := shareModules(goEnv["GOMODCACHE"], modules); err != nil {
		return nil, err
	}
	goEnv["GOMODCACHE"] = modules
	goEnv["GOPROXY"] = "file://" + filepath.ToSlash(proxy) + "," + goEnv["GOPROXY"]
	goEnv["GONOSUMDB"] = strings.TrimPrefix(goEnv["GONOSUMDB"]+","+modproxy.Root, ",")
	goEnv["GOFLAGS"] = strings.TrimSpace(goEnv["GOFLAGS"] + " -trimpath -modcacherw") // without -modcacherw, the module cache could not be removed
	goEnv["GOBIN"] = bin
	goEnv["GOENV"] = "off" // ignore settings in files
	w := &world{dir: dir, env: []string{"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "LANG=C.UTF-8"}}
	for name, value := range goEnv {
		w.env = append(w.env, name+"="+value)
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch strings.ToUpper(name) {
		case "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR":
			w.env = append(w.env, variable)
		}
	}
	_, err = w.run(ctx, dir, "go", "install", modproxy.Root+"/cmd/understudy@"+version)
	return w, err
}

func goEnv(ctx context.Context) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "-json",
		"GOCACHE", "GOFLAGS", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOPATH", "GOPRIVATE", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	var env map[string]string
	return env, json.Unmarshal(out, &env)
}

// shareModules links all modules in the cache shared, except ours, into the cache own.
func shareModules(shared, own string) error {
	ours := strings.Split(modproxy.Root, "/")[:2]
	for _, part := range []string{"", "cache/download"} {
		for depth := range len(ours) {
			dir := filepath.Join(part, filepath.Join(ours[:depth]...))
			if err := os.MkdirAll(filepath.Join(own, dir), 0o755); err != nil {
				return err
			}
			entries, err := os.ReadDir(filepath.Join(shared, dir))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			for _, e := range entries {
				if e.Name() == ours[depth] || dir == "" && e.Name() == "cache" {
					continue
				}
				if err := os.Symlink(filepath.Join(shared, dir, e.Name()), filepath.Join(own, dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *world) run(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "/usr/bin/env", args...) // env looks the command up in the world's PATH
	command.Dir = dir
	command.Env = append(w.env, "HOME="+w.dir, "TMPDIR="+w.dir)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, output.String())
	}
	return output.String(), nil
}
