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

// Under testing/synctest a sleep lets the clock of the bubble run, in no time. Anywhere
// else it is a guess at how long something takes. So whatever waits for time alone, by
// time.Sleep or by receiving from time.After and nothing else, stands in a function literal
// that runs in a bubble, or in a function to which all ways lead through one.
func TestNothingSleepsOutsideABubble(t *testing.T) {
	all := readBubbles(t)
	for _, u := range all.waits {
		if way, outside := all.outside(u, nil); outside {
			t.Errorf("%v waits for time to pass, and not in a bubble of testing/synctest: it is reached %s", strings.TrimPrefix(all.positions.Position(u.pos).String(), "../../"), way)
		}
	}
	if len(all.waits) < 100 {
		t.Errorf("found %d places that wait for time to pass, want all of them, which are more than 100", len(all.waits))
	}
}

// Waits that are planted are found, each where it is outside a bubble and only there.
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

// makers are judged in place of what waits for those whom they make: the runners of scenarios
// call that through an interface, and drive cores as well, which need no bubble.
var makers = map[string]string{
	"outlierdetection .Advance": "outlierdetection newHarness",
	"pickfirst .Advance":        "pickfirst newRecorder",
	"priority .Advance":         "priority newRecorder",
}

// bubbles is what is known of the functions of the repository: who waits, who calls whom,
// and what opens a bubble. Names stand for what they may name, as the folders import one another:
// what is found may be too much.
type bubbles struct {
	positions *token.FileSet
	files     []source
	waits     []use
	uses      map[string][]use           // of functions, by their keys
	openers   map[string]map[int]bool    // functions, and which of their arguments runs in a bubble
	imports   map[string]map[string]bool // folders, and those that they import
}

// source is a parsed file.
type source struct {
	path    string
	file    *ast.File
	imports map[string]string // by the names in the file: folders of ours, "" for all else
}

// use is a place in the code: one that waits, or one that names a function.
type use struct {
	pos      token.Pos
	within   *ast.FuncDecl // nil outside all functions
	holder   string        // the key of that function, or of a variable of the package
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

// resolve finds what opens bubbles, until there is nothing more, and then all uses.
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

// outside returns whether a place can be reached without a bubble, and by which way.
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

// unseen returns whether a place cannot name the function that holds another: one of a test is
// not seen outside tests.
func (b *bubbles) unseen(held, from use) bool {
	return b.inTest(held) && !b.inTest(from) && !ast.IsExported(held.holder[strings.LastIndexAny(held.holder, " .")+1:])
}

func (b *bubbles) inTest(u use) bool {
	return strings.HasSuffix(b.positions.Position(u.pos).Filename, "_test.go")
}

// waits returns whether the last node waits for time to pass, and for nothing else: what a
// select waits for besides may come first.
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

// clock returns whether an expression calls the function of package time.
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
