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

// unseen lists the prefixes of paths whose texts appear neither in the log nor in an error.
var unseen = []string{
	"bench/", "examples/", "interop/", "tools/", "internal/arch/", "internal/e2e/", "internal/testing/", // not in a release
	"discovery/sourcetest/",
	"internal/debugpage/",
	"internal/options/table.go",
	"cmd/understudy/internal/demo/",
}

// helpers lists functions whose arguments are not messages. An entry that ends with a full stop is
// a whole package.
var helpers = []string{"panic", "regexp.", "strings.", "estats.", "counter", "header."}

// said is a text in the library's code, with an ellipsis in place of each inserted value.
type said struct {
	at, text string
	seen     bool // users see the text in this form, so it needs a row
}

var (
	verb  = regexp.MustCompile(`%%|%(?:\[\d+\])?[-+# 0]*[\d.]*[a-zA-Z]`)
	words = regexp.MustCompile(`[^\s…]*[A-Za-z]{2,}[^\s…]*`)
	logs  = regexp.MustCompile(`(?i)^(?:log|logger|[a-z.]*\.log|[a-z.]*\.logger|\?)\.(?:warn|warning|info|error|debug)f?$|\.LogOnce$`)
	fails = regexp.MustCompile(`^(?:fmt\.Errorf|errors\.New|status\.Errorf?)$`)
)

// others is the heading of the last section of the page. The texts below it need not occur in our
// code.
const others = "## Messages from gRPC and Go"

// general limits how many texts one row may apply to. If one row applied to very many texts, a
// missing row would not be noticed. Errors that say what was expected need no row.
const general = 40

var explained = []string{"want …"}

// TestTheTroubleshootingPageHasEachText checks that each text that users can see in the log or in
// an error has a row in docs/howto/troubleshooting.md, and that each row applies to such a text.
// The test reads the texts from the code: the formats of log lines and errors and, in the library,
// all other literals of three words or more, because most reasons are built from these. A row
// applies to a text that contains the words in its first column. An ellipsis matches anything.
func TestTheTroubleshootingPageHasEachText(t *testing.T) {
	texts := productTexts(t)
	rows := troubles(t)
	needed := 0
	for _, s := range texts {
		if !s.seen {
			continue
		}
		needed++
		if !slices.ContainsFunc(rows, func(row trouble) bool { return row.appliesTo(s.text) }) {
			t.Errorf("%s: %q has no row in docs/howto/troubleshooting.md (if no user sees it, extend unseen or helpers in this test)", s.at, s.text)
		}
	}
	if needed < 300 {
		t.Errorf("%d texts were found, want at least 300", needed)
	}
	for _, row := range rows {
		if row.foreign {
			continue
		}
		n := 0
		for _, s := range texts {
			if row.appliesTo(s.text) {
				n++
			}
		}
		if n == 0 {
			t.Errorf("docs/howto/troubleshooting.md: `%s` is in no text of the product", row.words)
		}
		if n > general && !slices.Contains(explained, row.words) {
			t.Errorf("docs/howto/troubleshooting.md: `%s` applies to %d texts, want at most %d: be more specific", row.words, n, general)
		}
	}
}

type trouble struct {
	words   string
	foreign bool
}

// appliesTo reports whether text contains the row's words in the same order.
func (r trouble) appliesTo(text string) bool {
	for fixed := range strings.SplitSeq(r.words, "…") {
		_, rest, found := strings.Cut(text, fixed)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

func troubles(t *testing.T) []trouble {
	t.Helper()
	span := regexp.MustCompile("`([^`]+)`")
	var list []trouble
	table, foreign := false, false
	for line := range strings.Lines(read(t, "docs/howto/troubleshooting.md")) {
		foreign = foreign || strings.HasPrefix(line, others)
		table = strings.HasPrefix(line, "| words |") || table && strings.HasPrefix(line, "|")
		if !table {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, m := range span.FindAllStringSubmatch(first, -1) {
			list = append(list, trouble{m[1], foreign})
		}
	}
	if !foreign {
		t.Fatalf("the page has no section %q", others)
	}
	return list
}

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

type collector struct {
	at    func(ast.Node) string
	texts []said
}

// visit collects the texts in n. by is the function that n is an argument of, or "".
func (c *collector) visit(n ast.Node, by string) {
	ast.Inspect(n, func(in ast.Node) bool {
		switch in := in.(type) {
		case *ast.ImportSpec, *ast.Field:
			return false
		case *ast.CallExpr:
			called := name(in.Fun)
			if slices.ContainsFunc(helpers, func(of string) bool {
				return called == of || strings.HasSuffix(of, ".") && strings.HasPrefix(called, of)
			}) {
				return false
			}
			c.visit(in.Fun, by)
			for i, arg := range in.Args {
				if i > 0 && logs.MatchString(called) && !strings.HasSuffix(called, ".LogOnce") {
					continue // the name or value of a log attribute
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

// add adds a text. It ignores texts of one or two words, which may be names. Of the command's
// texts, it adds only log lines and errors.
func (c *collector) add(n ast.Node, text, by string) {
	count := len(words.FindAllString(text, -1))
	logged := logs.MatchString(by) || fails.MatchString(by)
	composed := count >= 3 && !strings.HasPrefix(c.at(n), "cmd/") && !strings.ContainsAny(text, "\n{")
	c.texts = append(c.texts, said{c.at(n), text, logged && count >= 2 || composed})
}

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

// textOf returns the text of a literal, or of a concatenation that contains literals.
func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return verb.ReplaceAllStringFunc(text, shown), err == nil
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

// shown returns the text that stands in place of a formatting verb.
func shown(verb string) string {
	if verb == "%%" {
		return "%"
	}
	return "…"
}
