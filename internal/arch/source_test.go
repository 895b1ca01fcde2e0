package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sources returns the Go files of directories.
func sources(t *testing.T, dirs ...string) (files []string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(file string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(file, ".go") {
				files = append(files, strings.TrimPrefix(filepath.ToSlash(file), "../../"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func parse(t *testing.T, set *token.FileSet, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(set, filepath.Join("../..", file), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestFilesAreShort(t *testing.T) {
	const limit = 600
	for _, file := range sources(t, ".") {
		if lines := strings.Count(readFile(t, file), "\n"); lines > limit {
			t.Errorf("%s has %d lines, want at most %d", file, lines, limit)
		}
	}
}

func TestCoresHaveNoClockAndNoGoroutines(t *testing.T) {
	clock := []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}
	for _, file := range sources(t, "internal/core", "internal/channel/topology") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(parse(t, token.NewFileSet(), file), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", file)
			case *ast.SelectorExpr:
				if of, ok := n.X.(*ast.Ident); ok && of.Name == "time" && slices.Contains(clock, n.Sel.Name) {
					t.Errorf("%s calls time.%s", file, n.Sel.Name)
				}
			}
			return true
		})
	}
}
