package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unseen lists packages and files whose texts are neither in the log nor in an error, each by the
// beginning of its path.
var unseen = []string{
	"bench/", "examples/", "interop/", "tools/", "internal/arch/", "internal/e2e/", "internal/testing/", // outside of a release
	"discovery/sourcetest/",     // for the tests of sources
	"internal/debugpage/",       // the page of a program
	"internal/options/table.go", // the table of options
	"cmd/understudy/internal/demo/",
}

// helpers lists functions whose arguments are descriptions, patterns or names. A name that ends in
// a full stop is a whole package.
var helpers = []string{"panic", "regexp.", "strings.", "estats.", "counter", "header."}

// said is a text of the product. Where its format has a verb, or another value is inserted, the
// text has an ellipsis.
type said struct{ at, text string }

var (
	verb  = regexp.MustCompile(`%(?:\[\d+\])?[-+# 0]*[\d.]*[a-zA-Z]`)
	words = regexp.MustCompile(`[^\s…]*[A-Za-z]{2,}[^\s…]*`)
	logs  = regexp.MustCompile(`(?i)^(?:log|logger|[a-z.]*\.log|[a-z.]*\.logger|\?)\.(?:warn|warning|info|error|debug)f?$|\.LogOnce$`)
	fails = regexp.MustCompile(`^(?:fmt\.Errorf|errors\.New|status\.Errorf?)$`)
)

// Each text that a user can see in the log, in the error of a call or of a command has a row in
// docs/howto/troubleshooting.md. The rows are matched by the words in the first column: a row
// applies to each text that contains these words, where "…" is anything.
func TestTheTroubleshootingPageHasEachText(t *testing.T) {
	rows := troubles(t)
	used := make([]bool, len(rows))
	texts := productTexts(t)
	if len(texts) < 300 {
		t.Fatalf("%d texts were found, want at least 300", len(texts))
	}
	for _, s := range texts {
		found := false
		for i, row := range rows {
			if row.MatchString(s.text) {
				found, used[i] = true, true
			}
		}
		if !found {
			t.Errorf("%s: %q has no row in docs/howto/troubleshooting.md (if no user sees it, extend unseen or helpers in this test)", s.at, s.text)
		}
	}
}

// troubles returns what the rows of the page match.
func troubles(t *testing.T) []*regexp.Regexp {
	var rows []*regexp.Regexp
	return rows
}

// productTexts returns the texts of the product's code.
func productTexts(t *testing.T) []said {
	var texts []said
	sources(t, func(file string) {
		if strings.HasSuffix(file, "_test.go") || slices.ContainsFunc(unseen, func(of string) bool { return strings.HasPrefix(file, of) }) {
			return
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.Join("../..", file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		c := collector{at: func(n ast.Node) string { return file + ":" + strconv.Itoa(set.Position(n.Pos()).Line) }}
		c.visit(parsed, "")
		texts = append(texts, c.texts...)
	}, ".")
	return texts
}

// collector finds the texts of a file.
type collector struct {
	at    func(ast.Node) string
	texts []said
}

// visit looks through n, which is an argument of the function called by, or of none.
func (c *collector) visit(n ast.Node, by string) {
	ast.Inspect(n, func(in ast.Node) bool {
		switch in := in.(type) {
		case *ast.ImportSpec, *ast.Field:
			return false
		case *ast.CallExpr:
			called := name(in.Fun)
			if slices.ContainsFunc(helpers, func(of string) bool { return called == of || strings.HasSuffix(of, ".") && strings.HasPrefix(called, of) }) {
				return false
			}
			c.visit(in.Fun, by)
			for i, arg := range in.Args {
				if i > 0 && logs.MatchString(called) {
					continue // the names of attributes
				}
				c.visit(arg, called)
			}
			return false
		case ast.Expr:
			text, ok := textOf(in)
			if ok {
				c.add(in, text, by)
			}
			return !ok
		}
		return true
	})
}

// add adds a text, unless it has too few words to be one. In the command, only lines of the log and
// errors are texts.
func (c *collector) add(n ast.Node, text, by string) {
	least := 3
	if logs.MatchString(by) || fails.MatchString(by) {
		least = 2
	} else if strings.HasPrefix(c.at(n), "cmd/") || strings.Contains(text, "\n") {
		return
	}
	if len(words.FindAllString(text, -1)) >= least {
		c.texts = append(c.texts, said{c.at(n), text})
	}
}

// name returns the name of a function, with what it is selected from if that is a name.
func name(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if of, ok := f.X.(*ast.Ident); ok {
			return of.Name + "." + f.Sel.Name
		}
		return "?." + f.Sel.Name
	}
	return "?"
}

// textOf returns the text of a literal, or of a sum with literals.
func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return verb.ReplaceAllString(strings.ReplaceAll(text, "%%", "%"), "…"), err == nil
		}
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, ok := textOf(e.X)
		right, also := textOf(e.Y)
		if !ok {
			left = "…"
		}
		if !also {
			right = "…"
		}
		return left + right, ok || also
	}
	return "", false
}
