package arch

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/surface.txt")

const maxSurface = 88

// TestSurface compares the public surface with a golden file, which has a line for each function,
// type, method, variable and constant. Constants of one type share a line, and fields are omitted.
// To update the golden file:
//
//	go test ./internal/arch -run TestSurface -update
func TestSurface(t *testing.T) {
	const golden = "testdata/surface.txt"
	got := surface(t)
	if n := len(got); n > maxSurface {
		t.Errorf("the public surface has %d lines, want at most %d", n, maxSurface)
	}
	text := strings.Join(got, "\n") + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range got {
		if !slices.Contains(strings.Split(string(want), "\n"), line) {
			t.Errorf("new in the public surface: %s", line)
		}
	}
	for line := range strings.Lines(string(want)) {
		if line = strings.TrimSuffix(line, "\n"); !slices.Contains(got, line) {
			t.Errorf("gone from the public surface: %s", line)
		}
	}
	if t.Failed() {
		t.Log("if this is intended, run this test with -update")
	}
}

func TestEveryPublicPackageHasAnExample(t *testing.T) {
	for _, dir := range publicDirs(t) {
		if len(doc.Examples(parseDir(t, token.NewFileSet(), dir, true)...)) == 0 {
			t.Errorf("package %s has no example", dir)
		}
	}
}

// parseDir parses the tests of a directory, or its other files.
func parseDir(t *testing.T, positions *token.FileSet, dir string, tests bool) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range paths {
		if strings.HasSuffix(file, "_test.go") == tests {
			files = append(files, parse(t, positions, strings.TrimPrefix(filepath.ToSlash(file), "../../")))
		}
	}
	return files
}

func publicDirs(t *testing.T) (dirs []string) {
	t.Helper()
	for _, p := range list(t, "./...") {
		dir, _ := directoryOf(p.ImportPath)
		if p.Name != "main" && dir != "internal" && !strings.HasPrefix(dir, "internal/") && !strings.Contains(dir, "/internal") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func TestPublicTypesAreNotInternal(t *testing.T) {
	for dir, p := range loadDocs(t) {
		internal := make(map[string]bool) // the local names of internal packages
		for _, path := range p.Imports {
			if strings.HasPrefix(path, root+"/internal/") {
				internal[filepath.Base(path)] = true
			}
		}
		var decls []ast.Decl
		functions := p.Funcs
		for _, t := range p.Types {
			decls, functions = append(decls, t.Decl), append(append(functions, t.Funcs...), t.Methods...)
		}
		for _, f := range functions {
			decls = append(decls, f.Decl)
		}
		for _, decl := range decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if from, ok := s.X.(*ast.Ident); ok && internal[from.Name] {
					t.Errorf("%s.%s uses %s.%s, which is internal", dir, nameOf(decl), from.Name, s.Sel.Name)
				}
				return false
			})
		}
	}
}

func nameOf(decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		return d.Specs[0].(*ast.TypeSpec).Name.Name
	}
	return ""
}

func surface(t *testing.T) (lines []string) {
	t.Helper()
	for dir, p := range loadDocs(t) {
		for _, line := range namesOf(p) {
			lines = append(lines, fmt.Sprintf("%s: %s", dir, line))
		}
	}
	slices.Sort(lines)
	return lines
}

func loadDocs(t *testing.T) map[string]*doc.Package {
	t.Helper()
	packages := make(map[string]*doc.Package)
	for _, dir := range publicDirs(t) {
		positions := token.NewFileSet()
		p, err := doc.NewFromFiles(positions, parseDir(t, positions, dir, false), root+"/"+dir)
		if err != nil {
			t.Fatal(err)
		}
		packages[dir] = p
	}
	return packages
}

func namesOf(p *doc.Package) (names []string) {
	values := func(kind string, all []*doc.Value) {
		for _, v := range all {
			for _, name := range v.Names {
				if ast.IsExported(name) {
					names = append(names, kind+" "+name)
				}
			}
		}
	}
	functions := func(all []*doc.Func) {
		for _, f := range all {
			name := "func " + f.Name
			if f.Recv != "" {
				name = "method " + strings.TrimPrefix(f.Recv, "*") + "." + f.Name
			}
			names = append(names, name)
		}
	}
	values("const", p.Consts)
	values("var", p.Vars)
	functions(p.Funcs)
	for _, t := range p.Types {
		names = append(names, "type "+t.Name)
		if len(t.Consts) > 0 {
			names = append(names, "const of the type "+t.Name)
		}
		values("var", t.Vars)
		functions(t.Funcs)
		functions(t.Methods)
		for _, method := range methodsOf(t) {
			names = append(names, "method "+t.Name+"."+method)
		}
	}
	return names
}

func methodsOf(t *doc.Type) (names []string) {
	for _, spec := range t.Decl.Specs {
		of, ok := spec.(*ast.TypeSpec).Type.(*ast.InterfaceType)
		if !ok {
			continue
		}
		for _, field := range of.Methods.List {
			for _, name := range field.Names {
				if name.IsExported() {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}
