// Command packages draws the picture in CONTRIBUTING.md, which shows the packages of the product in
// groups, and the imports between groups as arrows. It fails if a package is in no group, if a
// group names a package that does not exist, or if an arrow would point up.
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
	root  = "github.com/understudy-lb/understudy"
	page  = "CONTRIBUTING.md"
	fence = "```mermaid\nflowchart TD\n"
)

type group struct {
	title    string
	packages []string // packages; NAME/... means NAME and all packages below it, as one
	base     bool     // most groups import this group, so arrows to it are not drawn
}

// A group may import only groups below it.
var groups = []group{
	{title: "the command", packages: []string{"cmd/understudy/...", "internal/rehearse"}},
	{title: "the public package", packages: []string{".", "policy"}},
	{title: "the live page", packages: []string{"debug", "internal/page"}},
	{title: "sources of endpoints", packages: []string{
		"discovery/eds", "discovery/failover", "discovery/file", "discovery/kubernetes", "discovery/srv", "internal/envoy/...",
	}},
	{title: "the resolver of a target", packages: []string{"internal/channel/join"}},
	{title: "policies", packages: []string{
		"policy/priority", "policy/weightedtarget", "policy/weightedroundrobin", "policy/pickfirst", "policy/outlierdetection", "policy/drop", "policy/hierarchy",
	}},
	{title: "answers to a tree of policies", packages: []string{"internal/channel/topology"}},
	{title: "the contract of sources", packages: []string{"discovery"}},
	{title: "what policies share", packages: []string{"internal/lb/..."}},
	{title: "pure cores: they decide, without clock, locks or gRPC", packages: []string{"internal/core/..."}},
	{title: "used by all except the cores", packages: []string{
		"internal/config/...", "internal/net/...", "internal/text/...",
	}, base: true},
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

// run compares or replaces the picture, which is a block of Mermaid in the page.
func run(repository string, check bool) error {
	imports, err := list(repository)
	if err != nil {
		return err
	}
	arrows, err := arrows(imports)
	if err != nil {
		return err
	}
	file := filepath.Join(repository, page)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, _ := strings.Cut(string(text), fence)
	_, after, found := strings.Cut(rest, "```\n")
	if !found {
		return fmt.Errorf("%s has no block of Mermaid", page)
	}
	drawn := before + fence + draw(arrows) + "```\n" + after
	if !check {
		return os.WriteFile(file, []byte(drawn), 0o644)
	}
	if drawn != string(text) {
		return fmt.Errorf("the picture in %s is not current: run make packages", page)
	}
	return nil
}

func draw(arrows map[int][]int) string {
	var b strings.Builder
	for i, g := range groups {
		var names []string
		for _, dir := range g.packages {
			if dir = strings.TrimSuffix(dir, "/..."); dir == "." {
				dir = "understudy"
			}
			names = append(names, dir)
		}
		fmt.Fprintf(&b, "  %d[\"<b>%s</b><br>%s\"]\n", i, g.title, strings.Join(names, "<br>"))
	}
	for from := range groups {
		for _, to := range arrows[from] {
			fmt.Fprintf(&b, "  %d --> %d\n", from, to)
		}
	}
	return b.String()
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
			if to < from {
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
