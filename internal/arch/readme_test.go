package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func readFile(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The client in README.md must be a copy of examples/client/main.go, which the compiler checks.
func TestReadmeShowsTheExampleClient(t *testing.T) {
	source := readFile(t, "examples/client/main.go")
	_, source, _ = strings.Cut(source, "package main\n")
	if !strings.Contains(readFile(t, "README.md"), "```go\npackage main\n"+source+"```\n") {
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
	readme := readFile(t, "README.md")
	if lines, words := strings.Count(readme, "\n"), len(strings.Fields(readme)); lines > 150 || words >= 900 {
		t.Errorf("README.md has %d lines and %d words, want at most 150 and fewer than 900: move details to docs", lines, words)
	}
}

// generatedPages lists prefixes of the pages that programs write.
var generatedPages = []string{
	"docs/fleet/", "docs/league.md", "docs/howto/troubleshooting.md", "docs/reference/commands.md", "docs/reference/licences.md",
}

func TestDocumentsAreShort(t *testing.T) {
	const limit = 50_000
	words := 0
	count := func(file string) { words += len(strings.Fields(readFile(t, file))) }
	for _, file := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"} {
		count(file)
	}
	err := filepath.WalkDir("../../docs", func(file string, entry fs.DirEntry, err error) error {
		file = strings.TrimPrefix(filepath.ToSlash(file), "../../")
		generated := slices.ContainsFunc(generatedPages, func(page string) bool { return strings.HasPrefix(file, page) })
		if err == nil && strings.HasSuffix(file, ".md") && !generated && !entry.IsDir() {
			count(file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if words > limit {
		t.Errorf("the documents have %d words, want at most %d: before a page comes, say which one goes", words, limit)
	}
}

// The script of the gate must run the commands that README.md shows.
func TestGateRunsTheReadmesCommands(t *testing.T) {
	readme, gate := readFile(t, "README.md"), readFile(t, ".ci/run")
	for _, command := range []string{"go run ./cmd/understudy demo", "GOGC=400 go test -p 4 -vet=off ./cmd/understudy ./test/interop work"} {
		if !strings.Contains(readme, "\n"+command) || !strings.Contains(gate, "\n"+command+"\n") {
			t.Errorf("%q is not a command of both README.md and .ci/run", command)
		}
	}
}
