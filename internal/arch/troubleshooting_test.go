package arch

import (
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// invisiblePaths lists prefixes of the paths of files whose texts users see neither in the log nor
// in an error.
var invisiblePaths = []string{
	"examples/", "test/", "internal/arch/", "internal/e2e/", "internal/testing/", // not in a release
	"discovery/sourcetest/",
	"cmd/understudy/internal/demo/",
}

// onlyPage has the texts of the debug page, which need no rows.
const onlyPage = "internal/page/"

// nonMessageFunctions lists functions whose arguments are not messages. An entry that ends with a
// full stop means all functions of a package.
var nonMessageFunctions = []string{"panic", "regexp.", "strings.", "estats.", "counter", "header."}

// markdownFields lists the fields of an option that only docs/options.md shows.
var markdownFields = []string{"Default", "Range", "Source"}

// productText is a text in the library's code. An ellipsis replaces each inserted value.
type productText struct {
	position, text string
	visible        bool // users see the text, so it needs a row
}

var (
	formatVerb   = regexp.MustCompile(`%%|%(?:\[\d+\])?[-+# 0]*[\d.]*[a-zA-Z]`)
	wordPattern  = regexp.MustCompile(`[^\s…]*[A-Za-z]{2,}[^\s…]*`)
	logPattern   = regexp.MustCompile(`(?i)^(?:log|logger|[a-z.]*\.log|[a-z.]*\.logger|\?)\.(?:warn|warning|info|error|debug)f?$|\.LogOnce$`)
	errorPattern = regexp.MustCompile(`^(?:fmt\.Errorf|errors\.New|status\.Errorf?)$`)
)

// messageTable explains the texts.
const messageTable = "internal/page/messages.txt"

// foreignSection is the heading of the last section of the table. The texts in this section need not
// occur in our code.
const foreignSection = "## Messages from gRPC and Go"

// maxTextsPerRow is the maximum number of texts that one row may apply to, except for generalRows.
// If a row applied to very many texts, a missing row would not be noticed.
const maxTextsPerRow = 40

var generalRows = []string{"want …"}

// TestEachTextIsExplained checks that messageTable has each text that users can see in the log or in
// an error, and nothing else. The test reads the texts from the code. These are the formats of log
// lines and errors and, in the library, all other literals of three words or more, because errors
// are built from them. A row applies to a text that contains its words, of which an ellipsis matches
// anything, and to a text of one word if it is the row's only word.
func TestEachTextIsExplained(t *testing.T) {
	texts := productTexts(t)
	rows := readRows(t)
	needed := 0
	for _, s := range texts {
		if !s.visible {
			continue
		}
		needed++
		if !slices.ContainsFunc(rows, func(row tableRow) bool { return row.appliesTo(s.text) }) {
			t.Errorf("%s: %q is not in "+messageTable+" (if no user sees it, do not build it with these functions)", s.position, s.text)
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
			t.Errorf(messageTable+": %q is in no text of the product", row.words)
		}
		if n > maxTextsPerRow && !slices.Contains(generalRows, row.words) {
			t.Errorf(messageTable+": %q applies to %d texts, want at most %d: be more specific", row.words, n, maxTextsPerRow)
		}
	}
}

type tableRow struct {
	words   string
	foreign bool
}

// appliesTo reports whether text contains the row's words in the same order.
func (r tableRow) appliesTo(text string) bool {
	if !strings.ContainsAny(r.words, " …") {
		return text == r.words
	}
	for fixed := range strings.SplitSeq(r.words, "…") {
		_, rest, found := strings.Cut(text, fixed)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

func readRows(t *testing.T) []tableRow {
	t.Helper()
	var list []tableRow
	foreign := false
	for paragraph := range strings.SplitSeq(readFile(t, messageTable), "\n\n") {
		foreign = foreign || paragraph == foreignSection
		words, _, isRow := strings.Cut(paragraph, "\n  ")
		if !isRow {
			continue
		}
		for word := range strings.SplitSeq(words, "\n") {
			list = append(list, tableRow{word, foreign})
		}
	}
	if !foreign {
		t.Fatalf("the table has no section %q", foreignSection)
	}
	return list
}

func productTexts(t *testing.T) []productText {
	var texts []productText
	for _, file := range sources(t, ".") {
		if strings.HasSuffix(file, "_test.go") || slices.ContainsFunc(invisiblePaths, func(of string) bool { return strings.HasPrefix(file, of) }) {
			continue
		}
		set := token.NewFileSet()
		c := collector{position: func(n ast.Node) string { return file + ":" + strconv.Itoa(set.Position(n.Pos()).Line) }}
		c.visit(parse(t, set, file), "")
		texts = append(texts, c.texts...)
	}
	return texts
}

type collector struct {
	position func(ast.Node) string
	texts    []productText
}

// visit collects the texts in n. caller is the function of which n is an argument, or "".
func (c *collector) visit(n ast.Node, caller string) {
	ast.Inspect(n, func(node ast.Node) bool {
		switch in := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if in.Tag != nil {
				tag, _ := strconv.Unquote(in.Tag.Value)
				c.add(in, reflect.StructTag(tag).Get("want"), "")
			}
			return false
		case *ast.KeyValueExpr:
			if key, ok := in.Key.(*ast.Ident); ok && slices.Contains(markdownFields, key.Name) {
				return false
			}
		case *ast.CallExpr:
			called := functionName(in.Fun)
			if slices.ContainsFunc(nonMessageFunctions, func(of string) bool {
				return called == of || strings.HasSuffix(of, ".") && strings.HasPrefix(called, of)
			}) {
				return false
			}
			c.visit(in.Fun, caller)
			for i, arg := range in.Args {
				if i > 0 && logPattern.MatchString(called) && !strings.HasSuffix(called, ".LogOnce") {
					continue // arg is the name or value of a log attribute
				}
				c.visit(arg, called)
			}
			return false
		case ast.Expr:
			text, ok := textOf(in)
			if ok {
				c.add(in, text, caller)
			}
			return !ok
		}
		return true
	})
}

// add adds a text. Users see it if it is a log line or error of at least two words or, in the
// library, any other text of at least three words.
func (c *collector) add(n ast.Node, text, caller string) {
	count := len(wordPattern.FindAllString(text, -1))
	if strings.HasPrefix(c.position(n), onlyPage) {
		c.texts = append(c.texts, productText{c.position(n), text, false})
		return
	}
	logged := logPattern.MatchString(caller) || errorPattern.MatchString(caller)
	composed := count >= 3 && !strings.HasPrefix(c.position(n), "cmd/") && !strings.ContainsAny(text, "\n{")
	c.texts = append(c.texts, productText{c.position(n), text, logged && count >= 2 || composed})
}

func functionName(f ast.Expr) string {
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

// textOf returns the text of a string literal, or of a concatenation with string literals.
func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return formatVerb.ReplaceAllStringFunc(text, placeholder), err == nil
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

// placeholder returns the replacement for a formatting verb.
func placeholder(verb string) string {
	if verb == "%%" {
		return "%"
	}
	return "…"
}
