package outlierdetection

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	scenarioName = regexp.MustCompile("`((?:a50|rows)/[a-z0-9-]+\\.txt)`: ((?:[A-Za-z0-9-]+)(?:, [A-Za-z0-9-]+)*)")
	testName     = regexp.MustCompile("`((?:Test|Example)[A-Za-z0-9]*)`")
	quotation    = regexp.MustCompile(`(?s)^# "(.*?)"\n(?:#|new )`)
)

// Every scenario and test that docs/a50.md names exists, no row of its tables is without
// one, and each sentence that a scenario quotes is in the table.
func TestDocumentNamesWhatThereIs(t *testing.T) {
	document := read(t, "../docs/a50.md")
	var code strings.Builder
	for _, room := range []string{".", "../internal/core/outlierdetection", "../internal/lbconfig", "../topology", "../discovery", "../discovery/eds", "../discovery/file", "../discovery/internal/cds", "../internal/e2e"} {
		for _, file := range glob(t, room+"/*_test.go") {
			code.WriteString(read(t, file))
		}
	}
	_, tables, _ := strings.Cut(document, "## Where A50 leaves room")
	sentences := 0
	for line := range strings.Lines(tables) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) < 2 || strings.Contains(line, "---") || strings.HasSuffix(line, "| tested by |\n") || strings.HasPrefix(line, "| **") {
			continue
		}
		sentences++
		tested := cells[len(cells)-1]
		scenarios, tests := scenarioName.FindAllStringSubmatch(tested, -1), testName.FindAllStringSubmatch(tested, -1)
		if len(scenarios)+len(tests) == 0 {
			t.Errorf("nothing tests %s", cells[0])
		}
		for _, m := range scenarios {
			text := read(t, "../internal/core/outlierdetection/testdata/"+m[1])
			for name := range strings.SplitSeq(m[2], ", ") {
				if !strings.Contains(text, "\nnew "+name+"\n") {
					t.Errorf("there is no scenario %s in %s", name, m[1])
				}
			}
		}
		for _, m := range tests {
			if !strings.Contains(code.String(), "func "+m[1]+"(") {
				t.Errorf("there is no %s", m[1])
			}
		}
	}
	if sentences < 60 {
		t.Errorf("found %d sentences, want all of A50's", sentences)
	}
	checkQuotations(t, plain(document))
}

func checkQuotations(t *testing.T, document string) {
	for _, file := range glob(t, "../internal/core/outlierdetection/testdata/a50/*.txt") {
		quoted := 0
		for block := range strings.SplitSeq(read(t, file), "\n\n") {
			if m := quotation.FindStringSubmatch(block); m != nil {
				if quoted++; !strings.Contains(document, plain(m[1])) {
					t.Errorf("%s quotes %q, which docs/a50.md does not have", file, plain(m[1]))
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
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// plain drops what a line break or a comment adds to a sentence.
func plain(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "\n#", " ")), " ")
}
