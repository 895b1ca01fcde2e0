package pickfirst

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var named = regexp.MustCompile("`([a-z0-9]+/[a-z0-9-]+\\.txt|Test[A-Za-z]+)`")

func TestDocumentNamesExistingTests(t *testing.T) {
	document := read(t, "../../docs/pick-first.md")
	var code strings.Builder
	for _, pattern := range []string{"*_test.go", "../../internal/core/pickfirst/*_test.go", "../../internal/config/lbconfig/*_test.go", "../../test/interop/pickfirst/*_test.go"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			code.WriteString(read(t, f))
		}
	}
	for _, m := range named.FindAllStringSubmatch(document, -1) {
		if strings.HasPrefix(m[1], "Test") && !strings.Contains(code.String(), "func "+m[1]+"(") {
			t.Errorf("there is no %s", m[1])
		} else if _, err := os.Stat("../../internal/core/pickfirst/testdata/" + m[1]); !strings.HasPrefix(m[1], "Test") && err != nil {
			t.Error(err)
		}
	}
	_, table, _ := strings.Cut(document, "| sentence | tested by |")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) == 4 && !strings.Contains(line, "**") && !strings.Contains(line, "---") && !named.MatchString(cells[2]) {
			t.Errorf("no test for %q", strings.TrimSpace(cells[1]))
		}
	}
	quoted := 0
	files, _ := filepath.Glob("../../internal/core/pickfirst/testdata/a62/*.txt")
	for _, f := range files {
		quoted += strings.Count("\n"+read(t, f), "\n# \"")
	}
	if quoted < 15 {
		t.Errorf("the scenario files quote %d sentences of A62, want all 15", quoted)
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
