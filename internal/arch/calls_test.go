package arch

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
)

func (b *callGraph) walk(s source, f func(u use, stack []ast.Node)) {
	var u use
	var stack []ast.Node
	var inBubble []bool // for each node of the stack, whether it runs in a bubble
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n == nil {
			stack, inBubble = stack[:len(stack)-1], inBubble[:len(inBubble)-1]
			return true
		}
		stack = append(stack, n)
		u.inBubble = len(stack) > 1 && (inBubble[len(stack)-2] || b.runsInBubble(s, stack))
		inBubble = append(inBubble, u.inBubble)
		u.pos = n.Pos()
		if len(stack) <= 3 { // the nodes below are in the same function
			u.decl, u.function = enclosing(s.path, stack)
		}
		f(u, stack)
		return true
	})
}

// enclosing returns the function that contains the last node of the stack, and the function's key.
// In a package variable, it returns nil and the variable's key.
func enclosing(path string, stack []ast.Node) (*ast.FuncDecl, string) {
	if len(stack) > 1 {
		if f, ok := stack[1].(*ast.FuncDecl); ok {
			return f, keyOf(path, f)
		}
	}
	if len(stack) > 2 {
		if v, ok := stack[2].(*ast.ValueSpec); ok {
			return nil, filepath.Dir(path) + " " + v.Names[0].Name
		}
	}
	return nil, ""
}

func (b *callGraph) runsInBubble(s source, stack []ast.Node) bool {
	n := stack[len(stack)-1]
	call, ok := stack[len(stack)-2].(*ast.CallExpr)
	if !ok {
		return false
	}
	i := slices.IndexFunc(call.Args, func(e ast.Expr) bool { return e == n })
	return i >= 0 && slices.ContainsFunc(b.keysOf(s, call.Fun), func(key string) bool { return b.openers[key][i] })
}

// findOpeners looks for functions that call one of their parameters only in bubbles. It reports
// whether it has found a new function.
func (b *callGraph) findOpeners() (found bool) {
	for _, s := range b.files {
		leaked := make(map[*ast.FuncDecl]map[string]bool) // by function and name, whether the name is used outside a bubble
		b.walk(s, func(u use, stack []ast.Node) {
			id, ok := stack[len(stack)-1].(*ast.Ident)
			if _, declared := stack[max(0, len(stack)-2)].(*ast.Field); !ok || declared || u.decl == nil {
				return
			}
			if leaked[u.decl] == nil {
				leaked[u.decl] = make(map[string]bool)
			}
			leaked[u.decl][id.Name] = leaked[u.decl][id.Name] || !u.inBubble
		})
		for f, names := range leaked {
			for i, p := range parameters(f) {
				outside, used := names[p]
				if key := keyOf(s.path, f); used && !outside && !b.openers[key][i] {
					b.openers[key] = addTo(b.openers[key], i)
					found = true
				}
			}
		}
	}
	return found
}

func addTo[T comparable](set map[T]bool, element T) map[T]bool {
	if set == nil {
		set = make(map[T]bool)
	}
	set[element] = true
	return set
}

func parameters(f *ast.FuncDecl) map[int]string {
	found, i := make(map[int]string), 0
	for _, field := range f.Type.Params.List {
		_, function := field.Type.(*ast.FuncType)
		for _, name := range field.Names {
			if function {
				found[i] = name.Name
			}
			i++
		}
	}
	return found
}

func keyOf(path string, f *ast.FuncDecl) string {
	if f.Recv != nil {
		return filepath.Dir(path) + " ." + f.Name.Name
	}
	return filepath.Dir(path) + " " + f.Name.Name
}

// keysOf returns the keys of all functions that an expression may refer to. A method may be
// declared in any directory that this one imports. Because of interfaces, it may also be declared
// in any directory that imports this one.
func (b *callGraph) keysOf(s source, e ast.Expr) (keys []string) {
	dir := filepath.Dir(s.path)
	switch e := e.(type) {
	case *ast.Ident:
		return []string{dir + " " + e.Name}
	case *ast.SelectorExpr:
		if pkgName, ok := e.X.(*ast.Ident); ok {
			if pkgName.Name == "synctest" {
				return []string{"synctest " + e.Sel.Name}
			}
			if from, imported := s.imports[pkgName.Name]; imported {
				return []string{from + " " + e.Sel.Name}
			}
		}
		keys = append(keys, dir+" ."+e.Sel.Name)
		if !e.Sel.IsExported() {
			return keys
		}
		for other, imports := range b.imports {
			if b.imports[dir][other] || imports[dir] && !strings.HasSuffix(s.path, "_test.go") {
				keys = append(keys, other+" ."+e.Sel.Name)
			}
		}
	}
	return keys
}

// referenced returns the keys of all functions that the last node of the stack may refer to.
func (b *callGraph) referenced(s source, stack []ast.Node) []string {
	n, above := stack[len(stack)-1], stack[max(0, len(stack)-2)]
	switch above := above.(type) {
	case *ast.SelectorExpr:
		if above.Sel == n {
			return nil
		}
	case *ast.KeyValueExpr:
		if above.Key == n {
			return nil
		}
	case *ast.FuncDecl, *ast.ValueSpec:
		if e, ok := n.(ast.Expr); ok && !valueOf(above, e) {
			return nil
		}
	}
	if e, ok := n.(ast.Expr); ok {
		return b.keysOf(s, e)
	}
	return nil
}

func valueOf(above ast.Node, e ast.Expr) bool {
	v, ok := above.(*ast.ValueSpec)
	return ok && slices.Contains(v.Values, e)
}
