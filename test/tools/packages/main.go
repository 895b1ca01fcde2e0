// Command packages draws docs/packages.svg. It shows the packages of the product in groups, with
// arrows for imports between groups. If a package is in no group, a group names a package that
// doesn't exist, or an arrow would point up, it fails.
//
//	go run ./packages [--check]     from the directory tools; --check only compares the picture
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
	"slices"
	"strings"
)

const (
	root    = "github.com/understudy-lb/understudy"
	picture = "docs/packages.svg"
)

type group struct {
	title       string
	packages    []string // NAME/... is NAME and everything below it, as one
	row         int
	left, right int
	base        bool // nearly everything imports it, so leave out the arrows
}

// groups may only import groups in lower rows.
var groups = []group{
	{title: "the command", packages: []string{"cmd/understudy/...", "internal/rehearse"}, row: 0, left: 20, right: 940},
	{title: "the public package", packages: []string{".", "policy"}, row: 1, left: 20, right: 340},
	{title: "the live page", packages: []string{"debug", "internal/page"}, row: 1, left: 700, right: 940},
	{title: "sources of endpoints", packages: []string{
		"discovery/eds", "discovery/failover", "discovery/file", "discovery/kubernetes", "discovery/srv", "internal/envoy/...",
	}, row: 2, left: 20, right: 340},
	{title: "the resolver of a target", packages: []string{"internal/channel/join"}, row: 3, left: 20, right: 340},
	{title: "policies", packages: []string{
		"policy/priority", "policy/weightedtarget", "policy/weightedroundrobin", "policy/pickfirst", "policy/outlierdetection", "policy/drop", "policy/hierarchy",
	}, row: 4, left: 370, right: 670},
	{title: "answers to a tree of policies", packages: []string{"internal/channel/topology"}, row: 5, left: 20, right: 340},
	{title: "the contract of sources", packages: []string{"discovery"}, row: 6, left: 20, right: 340},
	{title: "what policies share", packages: []string{"internal/lb/..."}, row: 7, left: 370, right: 670},
	{title: "pure cores: they decide, without clock, locks or gRPC", packages: []string{"internal/core/..."}, row: 8, left: 20, right: 940},
	{title: "used by all except the cores", packages: []string{
		"internal/config/...", "internal/net/...", "internal/text/...",
	}, row: 9, left: 20, right: 940, base: true},
}

// ungrouped packages aren't imported by anything in the product, so they're not in the picture.
var ungrouped = []string{"discovery/sourcetest", "internal/arch", "internal/channel", "internal/e2e", "internal/testing/...", "examples/...", "docs/..."}

func main() {
	err := run("../..", slices.Contains(os.Args[1:], "--check"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(repository string, check bool) error {
	imports, err := list(repository)
	if err != nil {
		return err
	}
	arrows, err := arrows(imports)
	if err != nil {
		return err
	}
	drawn, file := draw(arrows), filepath.Join(repository, picture)
	if !check {
		return os.WriteFile(file, drawn, 0o644)
	}
	if now, err := os.ReadFile(file); err != nil {
		return err
	} else if !bytes.Equal(now, drawn) {
		return fmt.Errorf("%s is not current: run make packages", picture)
	}
	return nil
}

func list(repository string) (map[string][]string, error) {
	list := exec.Command("go", "list", "-json=ImportPath,Imports", "./...", "./cmd/understudy/...")
	list.Dir = repository
	list.Env = append(os.Environ(), "GOWORK=")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", list.Args, err)
	}
	imports := make(map[string][]string)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return imports, nil
		} else if err != nil {
			return nil, err
		}
		from, _ := dir(p.ImportPath)
		imports[from] = nil
		for _, path := range p.Imports {
			if to, ours := dir(path); ours {
				imports[from] = append(imports[from], to)
			}
		}
	}
}

func dir(path string) (string, bool) {
	if path == root {
		return ".", true
	}
	return strings.CutPrefix(path, root+"/")
}

func has(packages []string, dir string) bool {
	return slices.ContainsFunc(packages, func(r string) bool {
		parent, below := strings.CutSuffix(r, "/...")
		return r == dir || below && (dir == parent || strings.HasPrefix(dir, parent+"/"))
	})
}

func arrows(imports map[string][]string) (map[int][]int, error) {
	groupOf := make(map[string]int)
	for dir := range imports {
		if has(ungrouped, dir) {
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return has(g.packages, dir) })
		if i < 0 {
			return nil, fmt.Errorf("%s is in no group: add it to test/tools/packages/main.go", dir)
		}
		groupOf[dir] = i
	}
	for _, g := range groups {
		for _, r := range g.packages {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(groupOf)), func(dir string) bool { return has([]string{r}, dir) }) {
				return nil, fmt.Errorf("group %q names %s, which does not exist", g.title, r)
			}
		}
	}
	edges := make(map[int][]int)
	for dir, from := range groupOf {
		for _, path := range imports[dir] {
			to, known := groupOf[path]
			if !known || to == from || groups[to].base || slices.Contains(edges[from], to) {
				continue
			}
			if groups[to].row <= groups[from].row {
				return nil, fmt.Errorf("%s imports %s, but group %q is not below %q", dir, path, groups[to].title, groups[from].title)
			}
			edges[from] = append(edges[from], to)
		}
	}
	return reduceArrows(edges), nil
}

// reduceArrows removes arrows that are implied by a path of others. There are no import cycles, so
// this ends.
func reduceArrows(all map[int][]int) map[int][]int {
	var reaches func(from, to int) bool
	reaches = func(from, to int) bool {
		return slices.ContainsFunc(all[from], func(next int) bool { return next == to || reaches(next, to) })
	}
	remaining := make(map[int][]int)
	for from, targets := range all {
		for _, to := range targets {
			if !slices.ContainsFunc(targets, func(other int) bool { return other != to && reaches(other, to) }) {
				remaining[from] = append(remaining[from], to)
			}
		}
		slices.Sort(remaining[from])
	}
	return remaining
}
