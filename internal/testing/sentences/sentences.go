// Package sentences checks that each sentence of a gRFC is tested, either by a scenario whose file
// quotes it, or by tests that a document names.
package sentences

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Document is a Markdown file with tables. Each row is a rule, or a sentence of a gRFC that no
// scenario file quotes. Its tests are in the last column.
type Document struct {
	Path  string
	Begin string
	// Scenarios is the directory of the scenario files. Spec is a subdirectory of it whose files
	// quote the sentences that they test.
	Scenarios, Spec string
	Tests           []string
	// Rows is the minimum number of rows, and Quoted that of sentences in the scenario files.
	Rows, Quoted int
}

var (
	testName  = regexp.MustCompile("`((?:Test|Example)[A-Za-z0-9]*)`")
	quotation = regexp.MustCompile(`(?s)^# ".*?"\n(?:#|new )`)
)

func (d Document) Check(t *testing.T) {
	t.Helper()
	document := read(t, d.Path)
	var code strings.Builder
	for _, pattern := range d.Tests {
		for _, file := range glob(t, pattern) {
			code.WriteString(read(t, file))
		}
	}
	_, tables, _ := strings.Cut(document, d.Begin)
	rows := 0
	for line := range strings.Lines(tables) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) < 2 || strings.Contains(line, "---") || strings.HasSuffix(line, "| tested by |\n") || strings.HasPrefix(line, "| **") {
			continue
		}
		rows++
		d.checkRow(t, cells, code.String())
	}
	if rows < d.Rows {
		t.Errorf("%s: found %d rows, want at least %d", d.Path, rows, d.Rows)
	}
	d.checkQuotations(t)
}

func (d Document) checkRow(t *testing.T, cells []string, code string) {
	t.Helper()
	scenarioName := regexp.MustCompile("`((?:" + d.Spec + "|rows)/[a-z0-9-]+\\.txt)`: ((?:[A-Za-z0-9-]+)(?:, [A-Za-z0-9-]+)*)")
	testColumn := cells[len(cells)-1]
	scenarios, tests := scenarioName.FindAllStringSubmatch(testColumn, -1), testName.FindAllStringSubmatch(testColumn, -1)
	if len(scenarios)+len(tests) == 0 {
		t.Errorf("%s: no test for %s", d.Path, cells[0])
	}
	for _, m := range scenarios {
		text := read(t, filepath.Join(d.Scenarios, m[1]))
		for name := range strings.SplitSeq(m[2], ", ") {
			if !strings.Contains(text, "\nnew "+name+"\n") {
				t.Errorf("%s: there is no scenario %s in %s", d.Path, name, m[1])
			}
		}
	}
	for _, m := range tests {
		if !strings.Contains(code, "func "+m[1]+"(") {
			t.Errorf("%s: there is no %s", d.Path, m[1])
		}
	}
}

func (d Document) checkQuotations(t *testing.T) {
	t.Helper()
	quoted := 0
	for _, file := range glob(t, filepath.Join(d.Scenarios, d.Spec, "*.txt")) {
		for block := range strings.SplitSeq(read(t, file), "\n\n") {
			if quotation.MatchString(block) {
				quoted++
			}
		}
	}
	if quoted < d.Quoted {
		t.Errorf("the scenario files of %s quote %d sentences, want at least %d", d.Spec, quoted, d.Quoted)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return files
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // the test's own file
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
