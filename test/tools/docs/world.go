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

	"github.com/understudy-lb/understudy/test/tools/modproxy"
)

const version = "v0.1.0"

// environment is set up so that the pages' commands find the modules as released, and understudy on
// the PATH.
type environment struct {
	dir string
	env []string
}

// newEnvironment writes the modules of the repository to dir as version v0.1.0, and installs the
// command from them. That version must never end up in the machine's module cache, so pages have
// their own, which shares all other modules with it. Without -trimpath, the build cache would
// depend on where the module cache is.
func newEnvironment(ctx context.Context, repository, dir string) (*environment, error) {
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
	goEnv["GOFLAGS"] = strings.TrimSpace(goEnv["GOFLAGS"] + " -trimpath -modcacherw") // without -modcacherw, we couldn't remove the module cache
	goEnv["GOBIN"] = bin
	goEnv["GOENV"] = "off" // ignores the user's settings
	w := &environment{dir: dir, env: []string{"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "LANG=C.UTF-8"}}
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

// shareModules uses symbolic links in private to make everything in shared available, except our
// own modules.
func shareModules(shared, private string) error {
	ownPath := strings.Split(modproxy.Root, "/")[:2]
	for _, part := range []string{"", "cache/download"} {
		for depth := range len(ownPath) {
			dir := filepath.Join(part, filepath.Join(ownPath[:depth]...))
			if err := os.MkdirAll(filepath.Join(private, dir), 0o755); err != nil {
				return err
			}
			entries, err := os.ReadDir(filepath.Join(shared, dir))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			for _, e := range entries {
				if e.Name() == ownPath[depth] || dir == "" && e.Name() == "cache" {
					continue
				}
				if err := os.Symlink(filepath.Join(shared, dir, e.Name()), filepath.Join(private, dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *environment) run(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "/usr/bin/env", args...) // env looks in the PATH of command.Env
	command.Dir = dir
	command.Env = append(w.env, "HOME="+w.dir, "TMPDIR="+w.dir)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, output.String())
	}
	return output.String(), nil
}
