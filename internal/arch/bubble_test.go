package arch

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Outside a synctest bubble, time.Sleep takes real time, and no duration is certain to be long enough
// on a busy machine. So a test that sleeps, itself or in a function of its directory, must open a
// bubble, itself or in such a function. We do not follow methods, nor functions of other directories.
func TestNoSleepOutsideBubble(t *testing.T) {
	calls := make(map[string]map[string]map[string]bool) // the names that each function of a directory contains
	for _, file := range sources(t, ".") {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		dir := filepath.Dir(file)
		if calls[dir] == nil {
			calls[dir] = make(map[string]map[string]bool)
		}
		for _, decl := range parse(t, token.NewFileSet(), file).Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				calls[dir][f.Name.Name] = namesIn(f)
			}
		}
	}
	slept := 0
	for dir, functions := range calls {
		for name := range functions {
			if !strings.HasPrefix(name, "Test") || !reaches(functions, name, "time.Sleep", nil) {
				continue
			}
			slept++
			if !reaches(functions, name, "synctest.Test", nil) && !reaches(functions, name, "sourcetest.Run", nil) {
				t.Errorf("%s: %s sleeps without a synctest bubble", dir, name)
			}
		}
	}
	if slept < 100 {
		t.Errorf("found %d tests that sleep, want at least 100", slept)
	}
}

// namesIn returns the names that a function contains, and those of packages' functions with their
// package.
func namesIn(f *ast.FuncDecl) map[string]bool {
	names := make(map[string]bool)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			names[n.Name] = true
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				names[of.Name+"."+n.Sel.Name] = true
			}
		}
		return true
	})
	return names
}

func reaches(functions map[string]map[string]bool, from, to string, seen map[string]bool) bool {
	if functions[from][to] {
		return true
	}
	if seen == nil {
		seen = make(map[string]bool)
	}
	seen[from] = true
	for name := range functions[from] {
		if functions[name] != nil && !seen[name] && reaches(functions, name, to, seen) {
			return true
		}
	}
	return false
}
