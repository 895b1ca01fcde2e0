// Command licences lists the licences of the modules that the library and the command link. It
// writes a table to docs/reference/licences.md, and the texts that must accompany a binary to
// THIRD_PARTY_LICENSES. If a licence isn't in allowed, it fails.
//
//	go run ./licences [--check]     from the directory tools; --check only compares the files
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

const (
	root    = "github.com/understudy-lb/understudy"
	command = root + "/cmd/understudy"
	golang  = "the Go standard library"
)

// allowed lists the licences that our dependencies may have. Each permits use under the terms of
// Apache-2.0.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

var platforms = []string{"darwin", "linux", "windows"}

type moduleLicences struct {
	texts            map[string]string
	library, command bool
}

func main() {
	check := slices.Contains(os.Args[1:], "--check")
	if err := run("../..", check); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(repository string, check bool) error {
	modules := make(map[string]*moduleLicences)
	for _, platform := range platforms {
		library, err := public(repository, platform)
		if err != nil {
			return err
		}
		if err := collect(modules, repository, platform, library, func(l *moduleLicences) { l.library = true }); err != nil {
			return err
		}
		if err := collect(modules, repository, platform, []string{command}, func(l *moduleLicences) { l.command = true }); err != nil {
			return err
		}
	}
	table, err := table(modules)
	if err != nil {
		return err
	}
	for name, content := range map[string]string{"docs/reference/licences.md": table, "THIRD_PARTY_LICENSES": texts(modules)} {
		file := filepath.Join(repository, name)
		if !check {
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				return err
			}
			continue
		}
		if now, err := os.ReadFile(file); err != nil {
			return err
		} else if string(now) != content {
			return fmt.Errorf("%s is not current: run make licences", name)
		}
	}
	return nil
}

type goPackage struct {
	ImportPath, Dir string
	Standard        bool
	Module          *struct{ Path, Dir string }
}

func list(repository, platform string, args ...string) (packages []goPackage, err error) {
	list := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Standard,Module"}, args...)...)
	list.Dir = repository
	list.Env = append(os.Environ(), "GOWORK=", "GOOS="+platform, "GOARCH=amd64", "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", list.Args, err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

func public(repository, platform string) (paths []string, err error) {
	packages, err := list(repository, platform, "./...")
	for _, p := range packages {
		if !strings.HasPrefix(p.ImportPath, root+"/examples/") && !strings.Contains(p.ImportPath, "/internal/") {
			paths = append(paths, p.ImportPath)
		}
	}
	return paths, err
}

func collect(modules map[string]*moduleLicences, repository, platform string, packages []string, markLinked func(*moduleLicences)) error {
	deps, err := list(repository, platform, append([]string{"-deps"}, packages...)...)
	if err != nil {
		return err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	for _, p := range deps {
		module, dir := golang, strings.TrimSpace(string(goroot))
		switch {
		case p.Standard:
			p.Dir = dir
		case strings.HasPrefix(p.Module.Path, root):
			continue
		default:
			module, dir = p.Module.Path, p.Module.Dir
		}
		if modules[module] == nil {
			modules[module] = &moduleLicences{texts: make(map[string]string)}
		}
		markLinked(modules[module])
		if err := modules[module].read(dir, p.Dir); err != nil {
			return err
		}
	}
	return nil
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([.-].*)?$`)

// read also looks in parent directories, up to the module's root.
func (l *moduleLicences) read(module, dir string) error {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
				continue
			}
			file := filepath.Join(dir, entry.Name())
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(module, file)
			if err != nil {
				return err
			}
			l.texts[filepath.ToSlash(name)] = strings.TrimSpace(strings.ReplaceAll(string(text), "\r", ""))
		}
		if dir == module {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

func (l *moduleLicences) names() ([]string, error) {
	found := make(map[string]bool)
	for file, text := range l.texts {
		if strings.HasPrefix(strings.ToLower(filepath.Base(file)), "notice") {
			continue
		}
		coverage := licensecheck.Scan([]byte(text))
		if coverage.Percent < 70 {
			return nil, fmt.Errorf("%s: only %.0f %% of the text is known", file, coverage.Percent)
		}
		for _, match := range coverage.Match {
			if !slices.Contains(allowed, match.ID) {
				return nil, fmt.Errorf("%s: %s: want one of %v", file, match.ID, allowed)
			}
			found[match.ID] = true
		}
	}
	if len(found) == 0 {
		return nil, errors.New("there is no licence")
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func table(modules map[string]*moduleLicences) (string, error) {
	var page strings.Builder
	page.WriteString(`# Licences of the dependencies

This project is licensed under Apache-2.0. The table lists the modules that your program links if it imports any public
package of the library, and those that the command links, on Linux, macOS or Windows. Which of them a program really
links depends on the packages that it imports: ` + "`go version -m PROGRAM`" + ` lists them.

[THIRD_PARTY_LICENSES](../../THIRD_PARTY_LICENSES) has the texts, which must accompany a binary; the container image
contains them. ` + "`make licences`" + ` writes both files. The gate checks that they are current, and that the only licences
are ` + strings.Join(allowed, ", ") + `.

| module | licence | library | command |
| --- | --- | --- | --- |
`)
	mark := map[bool]string{true: "yes"}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		names, err := modules[name].names()
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", name, strings.Join(names, ", "), mark[modules[name].library], mark[modules[name].command])
	}
	return strings.ReplaceAll(page.String(), "|  |", "| |"), nil
}

func texts(modules map[string]*moduleLicences) string {
	files := make(map[string][]string)
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		for _, name := range slices.Sorted(maps.Keys(modules[module].texts)) {
			text := modules[module].texts[name]
			files[text] = append(files[text], module+": "+name)
		}
	}
	byFile := slices.SortedFunc(maps.Keys(files), func(a, b string) int { return strings.Compare(files[a][0], files[b][0]) })
	var all strings.Builder
	all.WriteString("The command understudy contains parts of the modules below. Each text is preceded by the files that\ncontain it. \"make licences\" writes this file.\n")
	line := strings.Repeat("=", 100) + "\n"
	for _, text := range byFile {
		all.WriteString("\n" + line + strings.Join(files[text], "\n") + "\n" + line + "\n" + text + "\n")
	}
	return all.String()
}
