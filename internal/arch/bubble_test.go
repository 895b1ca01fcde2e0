package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoSleepOutsideBubble checks that time.Sleep, and receiving from time.After, occur only in
// functions that always run in a synctest bubble. Outside a bubble, they take real time, and no
// duration is certain to be long enough on a busy machine.
func TestNoSleepOutsideBubble(t *testing.T) {
	graph := readCallGraph(t)
	for _, u := range graph.waits {
		if way, outside := graph.outside(u, nil); outside {
			t.Errorf("%v waits for time to pass outside a synctest bubble: it is called %s", strings.TrimPrefix(graph.positions.Position(u.pos).String(), "../../"), way)
		}
	}
	if len(graph.waits) < 100 {
		t.Errorf("found %d waits for time, want at least 100", len(graph.waits))
	}
}

// constructors maps some methods to the function that creates their receivers. The test looks at
// the callers of this function instead of the callers of the method. A scenario runner calls
// these methods through an interface, which types that are used outside bubbles also implement.
var constructors = map[string]string{
	"internal/testing/overload .Check": "internal/testing/overload serveWorld",
	"policy/outlierdetection .Advance": "policy/outlierdetection newHarness",
	"policy/pickfirst .Advance":        "policy/pickfirst newRecorder",
	"policy/priority .Advance":         "policy/priority newRecorder",
}

// callGraph is a call graph of all functions. It also records the statements that wait for time to
// pass, and the functions that open bubbles. It may contain calls that do not exist, because a name
// counts as a use of every function that it may refer to.
type callGraph struct {
	positions *token.FileSet
	files     []source
	waits     []use
	uses      map[string][]use
	openers   map[string]map[int]bool // by key of a function: the indexes of the arguments that it calls in a bubble
	imports   map[string]map[string]bool
}

type source struct {
	path    string
	file    *ast.File
	imports map[string]string
}

type use struct {
	pos      token.Pos
	decl     *ast.FuncDecl // the function that contains the use, or nil
	function string        // the key of the function or package variable that contains the use
	inBubble bool
}

func newCallGraph() *callGraph {
	return &callGraph{positions: token.NewFileSet(), imports: make(map[string]map[string]bool)}
}

func readCallGraph(t *testing.T) *callGraph {
	t.Helper()
	all := newCallGraph()
	sources(t, func(path string) {
		if strings.Contains(path, "testdata/") {
			return
		}
		parsed, err := parser.ParseFile(all.positions, filepath.Join("../..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all.add(path, parsed)
	}, ".")
	all.resolve()
	return all
}

func (b *callGraph) add(path string, file *ast.File) {
	s := source{path, file, make(map[string]string)}
	for _, spec := range file.Imports {
		from := strings.Trim(spec.Path.Value, `"`)
		dir, ours := strings.CutPrefix(from, root)
		dir = cmp.Or(strings.TrimPrefix(dir, "/"), ".")
		name := filepath.Base(from)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if s.imports[name] = ""; ours {
			s.imports[name] = dir
			b.imports[filepath.Dir(path)] = addTo(b.imports[filepath.Dir(path)], dir)
		}
	}
	b.files = append(b.files, s)
}

func (b *callGraph) resolve() {
	b.openers = map[string]map[int]bool{"synctest Test": {1: true}}
	for b.findOpeners() {
	}
	b.uses = make(map[string][]use)
	for _, s := range b.files {
		b.walk(s, func(u use, stack []ast.Node) {
			if isWait(stack) {
				b.waits = append(b.waits, u)
			}
			for _, key := range b.referenced(s, stack) {
				b.uses[key] = append(b.uses[key], u)
			}
		})
	}
}

func (b *callGraph) outside(u use, seen []string) (path string, outside bool) {
	if u.inBubble || slices.Contains(seen, u.function) {
		return "", false
	}
	uses := b.uses[cmp.Or(constructors[u.function], u.function)]
	if len(uses) == 0 {
		return fmt.Sprintf("from %q", u.function), true
	}
	for _, user := range uses {
		if b.cannotUse(u, user) {
			continue
		}
		if path, outside = b.outside(user, append(seen, u.function)); outside {
			return fmt.Sprintf("%s by %q", path, u.function), true
		}
	}
	return "", false
}

// cannotUse reports whether caller cannot use the function that contains callee. This is certain if
// callee is in an unexported function of a test, and caller is not in a test.
func (b *callGraph) cannotUse(callee, caller use) bool {
	return b.inTest(callee) && !b.inTest(caller) && !ast.IsExported(callee.function[strings.LastIndexAny(callee.function, " .")+1:])
}

func (b *callGraph) inTest(u use) bool {
	return strings.HasSuffix(b.positions.Position(u.pos).Filename, "_test.go")
}

// isWait reports whether the last node of the stack only waits for time to pass. A receive in a
// select does not count, because the select also waits for other events.
func isWait(stack []ast.Node) bool {
	switch n := stack[len(stack)-1].(type) {
	case *ast.CallExpr:
		return isTimeCall(n, "Sleep")
	case *ast.ExprStmt:
		_, selected := stack[len(stack)-2].(*ast.CommClause)
		receive, ok := n.X.(*ast.UnaryExpr)
		return ok && !selected && receive.Op == token.ARROW && isTimeCall(receive.X, "After")
	}
	return false
}

func isTimeCall(e ast.Expr, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	pkgName, ok := selector.X.(*ast.Ident)
	return ok && pkgName.Name == "time"
}
