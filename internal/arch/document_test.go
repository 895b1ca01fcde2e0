package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var tables = map[string]struct {
	scenarios []string
	rows      int // minimum number of rows in the table
}{
	"docs/a34.md": {nil, 30},
	"docs/a28.md": {[]string{"internal/core/weightedtarget/testdata"}, 18},
	"docs/a37.md": {[]string{"discovery/testdata/a37", "internal/core/clusters/testdata/graphs"}, 60},
}

var testedDirs = []string{
	"internal/channel", "internal/config/lbconfig", "discovery", "discovery/eds", "discovery/failover", "discovery/file", "discovery/kubernetes", "discovery/srv", "internal/envoy/adsclient", "internal/envoy/cds", "internal/core/clusters", "internal/e2e", "internal/core/join", "internal/channel/join", "test/interop", "policy/priority", "internal/core/weightedroundrobin", "internal/core/weightedtarget", "internal/core/edf", "internal/lb/edf", "internal/lb/weighted",
	"internal/envoy/messages", "internal/channel/topology", "policy/weightedroundrobin", "policy/weightedtarget",
}

var (
	testName     = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	scenarioName = regexp.MustCompile("`([a-z0-9]+\\.txt)`: ([^;`|]+)")
)

func TestDocumentsNameExistingTests(t *testing.T) {
	var code strings.Builder
	for _, dir := range testedDirs {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files of tests, %v", dir, len(files), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(data)
		}
	}
	for document, table := range tables {
		rows := 0
		for line := range strings.Lines(readFile(t, document)) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| **") || strings.HasSuffix(line, "| tested by |\n") {
				continue
			}
			rows++
			testedBy := cells[len(cells)-1]
			named := testName.FindAllStringSubmatch(testedBy, -1)
			for _, m := range named {
				if !strings.Contains(code.String(), "\nfunc "+m[1]+"(") {
					t.Errorf("%s: there is no %s", document, m[1])
				}
			}
			scenarios := scenarioName.FindAllStringSubmatch(testedBy, -1)
			for _, m := range scenarios {
				comments := commentsOf(t, table.scenarios, m[1])
				for words := range strings.SplitSeq(m[2], ", ") {
					if words = strings.TrimSpace(words); words != "" && !strings.Contains(comments, words) {
						t.Errorf("%s: no comment in %s contains %q", document, m[1], words)
					}
				}
			}
			if len(named)+len(scenarios) == 0 || len(cells) < 2 {
				t.Errorf("%s: nothing tests %s", document, cells[0])
			}
		}
		if rows < table.rows {
			t.Errorf("%s: %d rows, want at least %d", document, rows, table.rows)
		}
	}
}

func commentsOf(t *testing.T, dirs []string, name string) string {
	t.Helper()
	var comments strings.Builder
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join("../..", dir, name)); err != nil {
			continue
		}
		for line := range strings.Lines(readFile(t, dir+"/"+name)) {
			if comment, ok := strings.CutPrefix(line, "# "); ok {
				comments.WriteString(strings.TrimSpace(comment) + " ")
			}
		}
	}
	return comments.String()
}

// For most durations, docs/waits.md names a constant and its file. The constant must exist, and the
// file must refer to docs/waits.md.
func TestWaitsNameTheirConstants(t *testing.T) {
	links := regexp.MustCompile("\\[`([A-Za-z]+)`(?:, `([A-Za-z]+)`)?\\]\\(\\.\\./([a-z/]+\\.go)\\)").FindAllStringSubmatch(readFile(t, "docs/waits.md"), -1)
	if len(links) < 12 {
		t.Errorf("the table has %d constants", len(links))
	}
	for _, link := range links {
		code := readFile(t, link[3])
		for _, name := range link[1:3] {
			if name != "" && !regexp.MustCompile(`(?m)^(const )?\t?`+name+` +=`).MatchString(code) {
				t.Errorf("%s has no constant %s", link[3], name)
			}
		}
		if !strings.Contains(code, "docs/waits.md") {
			t.Errorf("%s does not refer to docs/waits.md", link[3])
		}
	}
}
