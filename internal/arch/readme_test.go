package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The client in the README is examples/client/main.go, which compiles.
func TestReadmeShowsTheExampleClient(t *testing.T) {
	source := read(t, "examples/client/main.go")
	_, source, _ = strings.Cut(source, "package main\n")
	if !strings.Contains(read(t, "README.md"), "```go\npackage main\n"+source+"```\n") {
		t.Error("the client in README.md is not examples/client/main.go: copy it there, from its package line on")
	}
	lines, importing := 0, false
	for line := range strings.Lines("package main\n" + source) {
		line = strings.TrimSpace(line)
		importing = importing || line == "import ("
		if line != "" && !importing {
			lines++
		}
		importing = importing && line != ")"
	}
	if lines > 15 {
		t.Errorf("the client has %d lines without imports and blank ones, want at most 15", lines)
	}
}

func TestReadmeIsShort(t *testing.T) {
	if n := strings.Count(read(t, "README.md"), "\n"); n > 150 {
		t.Errorf("README.md has %d lines, want at most 150: move details to docs", n)
	}
}

// Links in documents lead to existing files and headings.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	link := regexp.MustCompile(`\]\(([^)#: ]*)(#[^) ]*)?\)`)
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			file := filepath.Join(filepath.Dir(page), match[1])
			if match[1] == "" {
				file = page
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(page), match[1], err)
			} else if match[2] != "" && !slices.Contains(anchors(t, file), match[2]) {
				t.Errorf("%s links to %s%s, but there is no such heading", filepath.Base(page), match[1], match[2])
			}
		}
	}
}

func anchors(t *testing.T, page string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	left := regexp.MustCompile(`[^\pL\pN _-]`)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, "#"+strings.ReplaceAll(left.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-"))
	}
	return all
}

// The gate runs the commands that the README names.
func TestGateRunsTheReadmesCommands(t *testing.T) {
	readme, gate := read(t, "README.md"), read(t, ".ci/run")
	for _, command := range []string{"go run ./cmd/understudy demo", "go test work"} {
		if !strings.Contains(readme, "\n"+command) || !strings.Contains(gate, "\n"+command+"\n") {
			t.Errorf("%q is not a command of both README.md and .ci/run", command)
		}
	}
}
