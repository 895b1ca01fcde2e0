// Package sentences checks documents that list the sentences of a gRFC and name the tests of each
// sentence. For tests only.
package sentences

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Document is a Markdown file with tables. Each row has a sentence of a gRFC, and names the tests
// of this sentence in its last column.
type Document struct {
	Path  string
	Begin string
	// Scenarios is the directory of the scenario files. Spec is a subdirectory of it, whose files
	// quote the sentences that they test.
	Scenarios, Spec string
	Tests           []string
	// Least is the minimum number of sentences that the tables must have.
	Least int
}

var (
	testName  = regexp.MustCompile("`((?:Test|Example)[A-Za-z0-9]*)`")
	quotation = regexp.MustCompile(`(?s)^# "(.*?)"\n(?:#|new )`)
)

// Check checks that each row names a scenario or a test, that these scenarios and tests exist, and
// that the document contains each sentence that a scenario file quotes.
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
	sentences := 0
	for line := range strings.Lines(tables) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) < 2 || strings.Contains(line, "---") || strings.HasSuffix(line, "| tested by |\n") || strings.HasPrefix(line, "| **") {
			continue
		}
		sentences++
		d.checkRow(t, cells, code.String())
	}
	if sentences < d.Least {
		t.Errorf("%s: found %d sentences, want at least %d", d.Path, sentences, d.Least)
	}
	d.checkQuotations(t, joinLines(document))
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

func (d Document) checkQuotations(t *testing.T, document string) {
	t.Helper()
	for _, file := range glob(t, filepath.Join(d.Scenarios, d.Spec, "*.txt")) {
		quoted := 0
		for block := range strings.SplitSeq(read(t, file), "\n\n") {
			m := quotation.FindStringSubmatch(block)
			if m == nil {
				continue
			}
			for sentence := range strings.SplitSeq(joinLines(m[1]), ". It will ") { // a quotation may have a second sentence that begins with "It will"
				quoted++
				if !strings.Contains(document, strings.TrimSuffix(sentence, ".")) {
					t.Errorf("%s quotes %q, which %s does not have", file, sentence, d.Path)
				}
			}
		}
		if quoted < 4 {
			t.Errorf("%s quotes %d sentences", file, quoted)
		}
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

func joinLines(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "\n#", " ")), " ")
}
