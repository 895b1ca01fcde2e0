package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

type mutant struct {
	file, pkg      string
	line           int
	function       *ast.FuncDecl // the changed function, or nil outside functions
	from, to       string        // the line before and after the change
	original, code []byte        // the content of the file before and after the change
	set            *token.FileSet

	number     int
	uncompiled bool
}

func (m *mutant) offset(pos token.Pos) int { return m.set.Position(pos).Offset }

// String returns the mutant's name: the file, the function and the text of the changed line. We
// leave out the line number, so that the name stays the same when other lines change.
func (m *mutant) String() string {
	function := "package"
	if m.function != nil {
		function = m.function.Name.Name
	}
	return fmt.Sprintf("%s: %s: %s -> %s", filepath.Base(m.file), function, m.from, m.to)
}

var operators = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
}

func mutantsOf(dir string) ([]*mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []*mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, code, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		w := &walker{base: mutant{file: file, pkg: parsed.Name.Name, original: code, set: set}}
		for _, decl := range parsed.Decls {
			w.base.function, _ = decl.(*ast.FuncDecl)
			ast.Inspect(decl, w.visit)
		}
		all = append(all, w.found...)
	}
	return all, nil
}

type walker struct {
	base  mutant
	found []*mutant
}

func (w *walker) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.GenDecl:
		return n.Tok != token.IMPORT
	case *ast.BinaryExpr:
		for _, to := range operators[n.Op] {
			w.replace(n.OpPos, len(n.Op.String()), to.String())
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			w.replace(n.OpPos, 1, "")
		}
	case *ast.BasicLit:
		if number, err := strconv.ParseUint(n.Value, 10, 32); n.Kind == token.INT && err == nil {
			w.replace(n.Pos(), len(n.Value), strconv.FormatUint(number+1, 10))
		}
	case *ast.Ident:
		if other, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
			w.replace(n.Pos(), len(n.Name), other)
		}
	case *ast.IfStmt:
		w.replace(n.Cond.Pos(), int(n.Cond.End()-n.Cond.Pos()), "!("+w.text(n.Cond)+")")
	case *ast.ExprStmt: // a call whose result isn't used
		w.replace(n.Pos(), int(n.End()-n.Pos()), "_ = 0")
	case *ast.IncDecStmt, *ast.BranchStmt:
		w.replace(n.Pos(), int(n.End()-n.Pos()), "_ = 0")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			w.replace(n.Pos(), int(n.End()-n.Pos()), "_ = 0")
		}
	}
	return true
}

func (w *walker) text(node ast.Node) string {
	return string(w.base.original[w.base.offset(node.Pos()):w.base.offset(node.End())])
}

func (w *walker) replace(pos token.Pos, length int, with string) {
	m, all, at := w.base, w.base.original, w.base.offset(pos)
	begin, end := bytes.LastIndexByte(all[:at], '\n')+1, at+length
	end += bytes.IndexByte(append(all[end:len(all):len(all)], '\n'), '\n')
	m.line = m.set.Position(pos).Line
	if m.function != nil && pos < m.function.Body.Pos() {
		m.function = nil // the copy of the function must have the same signature
	}
	m.code = bytes.Join([][]byte{all[:at], []byte(with), all[at+length:]}, nil)
	m.from = strings.Join(strings.Fields(string(all[begin:end])), " ")
	m.to = strings.Join(strings.Fields(string(m.code[begin:end+len(with)-length])), " ")
	w.found = append(w.found, &m)
}
