package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNamesInComments checks that comments use the current names of what they describe, in all
// modules. [tree.misnamed] and [tree.unresolved] define the two rules. testdata/comments.go breaks
// each of them.
func TestNamesInComments(t *testing.T) {
	const broken = "internal/arch/testdata/comments.go"
	all := readTree(t)
	all.parse(t, broken)
	var found []string
	for _, p := range append(all.misnamed(), all.unresolved(t)...) {
		if p.position.Filename == broken {
			found = append(found, p.name)
		} else {
			t.Errorf("%s:%d: %s", p.position.Filename, p.position.Line, p.text)
		}
	}
	want := []string{
		"Moved", "Refusals", "renamed", "When", "forgotten", "TestOfAnotherName", "restart",
		"Refusals", "Handed", "Counter.Sum", "counter.Sum", "time.Pause", "Clock", "oldHelper", "Old" + "Helper", // the last must not occur here
	}
	if !slices.Equal(found, want) {
		t.Errorf("in %s, found %q, want %q", broken, found, want)
	}
}

type problem struct {
	position token.Position
	name     string // the wrong name
	text     string
}

// misnamed returns the doc comments of exported names that do not begin with the name.
//
// The comment of a function, type, constant, variable, field or method of an interface begins with
// its name, after an article or none. If several names share a comment, it begins with one of them,
// and lists no others in "X and Y" or "X or Y". A comment that begins with "The following" is for a
// group of fields. We do not check the comments of const, var and type blocks, nor of what is
// declared in a function. The comment of an unexported name may begin with the reason, or with "we".
//
// The comment of a test may tell a story. But if it begins with a lower-case word, the directory's
// code must contain this word, and if it begins with the name of a test, this must be its own.
func (a *tree) misnamed() (found []problem) {
	for _, file := range a.sortedFiles() {
		d := a.ours[path.Dir(file)]
		ast.Inspect(a.files[file], func(n ast.Node) bool {
			if _, ok := n.(*ast.BlockStmt); ok {
				return false
			}
			doc, names := documented(n)
			if doc == nil || doc.Text() == "" || !slices.ContainsFunc(names, ast.IsExported) {
				return true
			}
			wrong := wrongName(doc.Text(), names)
			if f, ok := n.(*ast.FuncDecl); ok && tellsStory(f, file) {
				wrong = wrongStory(doc.Text(), names[0], d)
			}
			if wrong != "" {
				found = append(found, problem{
					a.positions.Position(doc.Pos()), wrong,
					fmt.Sprintf("the comment of %s begins with %q: begin with the name, or correct it", strings.Join(names, ", "), wrong),
				})
			}
			return true
		})
	}
	return found
}

func documented(n ast.Node) (doc *ast.CommentGroup, names []string) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Doc, []string{n.Name.Name}
	case *ast.GenDecl:
		if !n.Lparen.IsValid() && n.Tok != token.IMPORT {
			_, names = documented(n.Specs[0])
			return n.Doc, names
		}
	case *ast.TypeSpec:
		return n.Doc, []string{n.Name.Name}
	case *ast.ValueSpec:
		for _, name := range n.Names {
			names = append(names, name.Name)
		}
		return n.Doc, names
	case *ast.Field:
		return n.Doc, fieldNames(n)
	}
	return nil, nil
}

var (
	leadingNames = regexp.MustCompile(`^(?:(?:A|An|The) )?([\w./'-]+)(?:((?:, \w+)*),? (?:and|or) (\w+))?`)
	lowerCase    = regexp.MustCompile(`^[a-z]\w*$`)
	testPattern  = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)([A-Z_]\w*)?$`)
)

func wrongName(text string, names []string) string {
	if strings.HasPrefix(text, "The following") {
		return ""
	}
	match := leadingNames.FindStringSubmatch(text)
	if match == nil {
		return strings.Fields(text)[0]
	}
	first := strings.TrimRight(strings.TrimSuffix(match[1], "'s"), ".")
	if !slices.Contains(names, first) {
		return first
	}
	if others := strings.Split(match[2], ", ")[1:]; len(names) > 1 && match[3] != "" {
		for _, other := range append(others, match[3]) {
			if !slices.Contains(names, other) {
				return other
			}
		}
	}
	return ""
}

func tellsStory(f *ast.FuncDecl, file string) bool {
	name := f.Name.Name
	tested := strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/")
	return f.Recv == nil && tested && testPattern.MatchString(name)
}

func wrongStory(text, name string, d *declarations) string {
	first := strings.TrimRight(strings.Fields(text)[0], ".,:;")
	switch {
	case first == name,
		lowerCase.MatchString(first) && (d.used[first] || d.literals[first] || slices.Contains(properNames, first)),
		!lowerCase.MatchString(first) && !testPattern.MatchString(first):
		return ""
	}
	return first
}
