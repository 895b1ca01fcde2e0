package pickfirst

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([a-z0-9]+/[a-z0-9-]+\\.txt|Test[A-Za-z]+)`")

func TestDocumentNamesExistingTests(t *testing.T) {
	document := read(t, "../../docs/pick-first.md")
	var code strings.Builder
	for _, pattern := range []string{"*_test.go", "../../internal/core/pickfirst/*_test.go", "../../test/interop/pickfirst/*_test.go"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			code.WriteString(read(t, f))
		}
	}
	_, table, _ := strings.Cut(document, "| sentence | tested by |")
	table, _, _ = strings.Cut(table, "\n\n")
	sentences := 0
	for line := range strings.Lines(document) {
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			if strings.HasPrefix(m[1], "Test") && !strings.Contains(code.String(), "func "+m[1]+"(") {
				t.Errorf("there is no %s", m[1])
			}
		}
		cells := strings.Split(line, "|")
		if !strings.Contains(table, line) || len(cells) != 4 || strings.Contains(line, "**") || strings.Contains(line, "---") {
			continue
		}
		sentences++
		names := quoted.FindAllStringSubmatch(cells[2], -1)
		if len(names) == 0 {
			t.Errorf("no test for %q", strings.TrimSpace(cells[1]))
		}
		for _, m := range names {
			if strings.HasPrefix(m[1], "a62/") && !strings.Contains(plain(read(t, "../../internal/core/pickfirst/testdata/"+m[1])), plain(cells[1])) {
				t.Errorf("%s does not quote %q", m[1], strings.TrimSpace(cells[1]))
			}
		}
	}
	if sentences < 25 {
		t.Errorf("found %d sentences of A62, want all", sentences)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func plain(text string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("#", "", "`", "", "\"", "").Replace(text)), " ")
}
