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

// TestNothingSleepsOutsideABubble checks that time.Sleep, and receiving from time.After, occur only
// in functions that always run in a synctest bubble. Elsewhere they would take real time, and no
// duration would be certain to be long enough.
func TestNothingSleepsOutsideABubble(t *testing.T) {
	all := readBubbles(t)
	for _, u := range all.waits {
		if way, outside := all.outside(u, nil); outside {
			t.Errorf("%v waits for time to pass outside a synctest bubble: it is called %s", strings.TrimPrefix(all.positions.Position(u.pos).String(), "../../"), way)
		}
	}
	if len(all.waits) < 100 {
		t.Errorf("found %d waits for time, want at least 100", len(all.waits))
	}
}

func TestWaitsOutsideABubbleAreFound(t *testing.T) {
	all := newBubbles()
	file, err := parser.ParseFile(all.positions, "testdata/bubbles.go", nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	all.add("testdata/bubbles.go", file)
	all.resolve()
	var want, got []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && strings.Contains(f.Doc.Text(), "outside") {
			want = append(want, f.Name.Name)
		}
	}
	for _, u := range all.waits {
		if _, outside := all.outside(u, nil); outside {
			got = append(got, u.within.Name.Name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("found waits outside a bubble in %q, want %q", got, want)
	}
}

// makers maps some methods to the function that creates their receivers. For these, the test looks
// at the callers of that function, because a scenario runner calls the methods through an interface
// that types without a bubble also implement.
var makers = map[string]string{
	"outlierdetection .Advance": "outlierdetection newHarness",
	"pickfirst .Advance":        "pickfirst newRecorder",
	"priority .Advance":         "priority newRecorder",
}

// bubbles is a call graph of all functions. It also records the places that wait for time to pass,
// and the functions that open bubbles. It may contain calls that do not exist, because a name
// counts as every function that it might refer to.
type bubbles struct {
	positions *token.FileSet
	files     []source
	waits     []use
	uses      map[string][]use
	openers   map[string]map[int]bool // by key of a function: the indexes of its arguments that it calls in a bubble
	imports   map[string]map[string]bool
}

type source struct {
	path    string
	file    *ast.File
	imports map[string]string
}

type use struct {
	pos      token.Pos
	within   *ast.FuncDecl // nil outside of functions
	holder   string        // the key of that function or of a package variable
	inBubble bool
}

func newBubbles() *bubbles {
	return &bubbles{positions: token.NewFileSet(), imports: make(map[string]map[string]bool)}
}

func readBubbles(t *testing.T) *bubbles {
	t.Helper()
	all := newBubbles()
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

func (b *bubbles) add(path string, file *ast.File) {
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
			b.imports[filepath.Dir(path)] = with(b.imports[filepath.Dir(path)], dir)
		}
	}
	b.files = append(b.files, s)
}

func (b *bubbles) resolve() {
	b.openers = map[string]map[int]bool{"synctest Test": {1: true}}
	for b.findOpeners() {
	}
	b.uses = make(map[string][]use)
	for _, s := range b.files {
		b.walk(s, func(u use, stack []ast.Node) {
			if waits(stack) {
				b.waits = append(b.waits, u)
			}
			for _, key := range b.named(s, stack) {
				b.uses[key] = append(b.uses[key], u)
			}
		})
	}
}

func (b *bubbles) outside(u use, seen []string) (way string, outside bool) {
	if u.inBubble || slices.Contains(seen, u.holder) {
		return "", false
	}
	uses := b.uses[cmp.Or(makers[u.holder], u.holder)]
	if len(uses) == 0 {
		return fmt.Sprintf("from %q", u.holder), true
	}
	for _, user := range uses {
		if b.unseen(u, user) {
			continue
		}
		if way, outside = b.outside(user, append(seen, u.holder)); outside {
			return fmt.Sprintf("%s by %q", way, u.holder), true
		}
	}
	return "", false
}

// unseen reports whether the code at from cannot use the function that contains held. This is
// certain if held is in an unexported function of a test and from is not in a test.
func (b *bubbles) unseen(held, from use) bool {
	return b.inTest(held) && !b.inTest(from) && !ast.IsExported(held.holder[strings.LastIndexAny(held.holder, " .")+1:])
}

func (b *bubbles) inTest(u use) bool {
	return strings.HasSuffix(b.positions.Position(u.pos).Filename, "_test.go")
}

// waits reports whether the last node of the stack waits only for time to pass. A receive in a
// select does not count, because another case may be chosen.
func waits(stack []ast.Node) bool {
	switch n := stack[len(stack)-1].(type) {
	case *ast.CallExpr:
		return clock(n, "Sleep")
	case *ast.ExprStmt:
		_, selected := stack[len(stack)-2].(*ast.CommClause)
		receive, ok := n.X.(*ast.UnaryExpr)
		return ok && !selected && receive.Op == token.ARROW && clock(receive.X, "After")
	}
	return false
}

func clock(e ast.Expr, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	of, ok := selector.X.(*ast.Ident)
	return ok && of.Name == "time"
}
