package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func sources(t *testing.T, f func(file string), dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !entry.IsDir() && strings.HasSuffix(file, ".go") {
				f(strings.TrimPrefix(filepath.ToSlash(file), "../../"))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	const limit = 600
	sources(t, func(file string) {
		data, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(data, []byte("\n")); lines > limit {
			t.Errorf("%s has %d lines, want at most %d", file, lines, limit)
		}
	}, ".")
}

// Only the policy drop, and the refusal of calls that no priority takes, may be status errors. If a picker returns a status error, gRPC fails
// even wait-for-ready calls with it.
func TestPoliciesReturnPlainErrors(t *testing.T) {
	constructors := []string{"Error", "Errorf", "ErrorProto", "New", "Newf", "FromProto"}
	sources(t, func(file string) {
		// Servers in tests may return status errors.
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.ToSlash(file), "internal/testing/") {
			return
		}
		switch filepath.ToSlash(file) {
		case "internal/channel/join/awaiting.go": // creates the status of calls whose context has ended
			return
		case "policy/priority/offer.go": // refuses calls, so that they do not wait
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := selector.X.(*ast.Ident); ok && of.Name == "status" && slices.Contains(constructors, selector.Sel.Name) {
				t.Errorf("%s calls status.%s: a picker's error must not be a status", file, selector.Sel.Name)
			}
			return true
		})
	}, "policy/priority", "policy/weightedtarget", "policy/weightedroundrobin", "policy/pickfirst", "internal")
}

func TestNoTestSkips(t *testing.T) {
	sources(t, func(file string) {
		if !strings.HasSuffix(file, "_test.go") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, selector.Sel.Name) {
				t.Errorf("%s skips a test", file)
			}
			return true
		})
	}, ".")
}

func TestCoresHaveNoClockAndNoGoroutines(t *testing.T) {
	clock := []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}
	sources(t, func(file string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
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
	}, "internal/core", "internal/channel/topology")
}
