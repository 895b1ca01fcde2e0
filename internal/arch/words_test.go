package arch

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retired lists words that the glossary in CONTRIBUTING.md replaces, and phrases that are not usual
// in technical English. use describes what to write instead.
var retired = []struct{ pattern, use string }{
	{`anew`, "again"},
	{`in vain`, "without success"},
	{`for ever`, "forever, indefinitely"},
	{`goes before|go before`, "precedes, takes precedence"},
	{`has its way|have their way`, "decides"},
	{`(?:stands|stand) for`, "represents, denotes"},
	{`to and fro`, "back and forth"},
	{`what (?:it|they) (?:says|say|said)`, "a noun: the response, the answer, the configuration"},
	{`is told|are told|was told`, "receives, is notified of"},
	{`as well as it was`, "unchanged"},
	{`whom`, "a shorter sentence"},
	{`lest`, "so that ... not"},
	{`thereby|whence|hence`, "so"},
	{`at hand`, "available"},
	{`once more`, "again"},
	{`comes to nothing`, "fails"},
	{`makes do`, "uses"},
	{`falls silent|fell silent`, "stops responding"},
	{`be it`, "whether"},
	{`save for|but for`, "except"},
	{`has it that`, "says"},
	{`all the same`, "nevertheless"},
	{`no more than that`, "only"},
	{`in the place of`, "instead of"},
	{`(?:the|a|each|first|second|lower|higher|next|of|in) tiers?`, "priority"},
	{`verdicts?`, "answer, result"},
	{`lanes?`, "limit"},
	{`(?:the|a|each|every|this|these|its) rooms?`, "package"},
	{`the night`, "the nightly run"},
}

// retiredNames lists words that no name in the code may contain. They still occur below the
// directories in unrenamed.
var (
	retiredNames = []string{"tier", "tiers", "rooms", "intake", "intakes", "lane", "seat"}
	unrenamed    = []string{
		"cmd/understudy/internal/explain/", "internal/channel/", "internal/rehearse/", "internal/testing/", "test/",
	}
)

// quoted matches quotations, the targets of links, and what says where a page comes from.
var quoted = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|“[^”]*”|\\]\\([^)]*\\)|<!--.*-->")

func TestRetiredWords(t *testing.T) {
	var patterns []string
	for _, r := range retired {
		patterns = append(patterns, r.pattern)
	}
	all := regexp.MustCompile(`(?i)\b(?:` + strings.Join(patterns, "|") + `)\b`)
	check := func(file string, line int, text string) {
		found := all.FindString(quoted.ReplaceAllString(text, ""))
		if found == "" {
			return
		}
		for _, r := range retired {
			if regexp.MustCompile(`(?i)^(?:` + r.pattern + `)$`).MatchString(found) {
				t.Errorf("%s:%d: %q: write %s", file, line, found, r.use)
			}
		}
	}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, file)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") && name != "internal/arch/words_test.go":
			return checkCode(t, file, name, check)
		case strings.HasSuffix(name, ".md"):
			return checkLines(file, name, check)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkCode(t *testing.T, file, name string, check func(string, int, string)) error {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			checkComment(set, c, name, check)
		}
	}
	if slices.ContainsFunc(unrenamed, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
		return nil
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if identifier, ok := n.(*ast.Ident); ok {
			for _, word := range nameWord.FindAllString(identifier.Name, -1) {
				if slices.Contains(retiredNames, strings.ToLower(word)) {
					t.Errorf("%s: %s contains a word that is not in the glossary of CONTRIBUTING.md", set.Position(n.Pos()), identifier.Name)
				}
			}
		}
		return true
	})
	return nil
}

var nameWord = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

func checkComment(set *token.FileSet, c *ast.Comment, name string, check func(string, int, string)) {
	for i, line := range strings.Split(c.Text, "\n") {
		check(name, set.Position(c.Pos()).Line+i, line)
	}
}

func checkLines(file, name string, check func(string, int, string)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	code := false
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if strings.HasPrefix(lines.Text(), "```") {
			code = !code
		}
		if !code {
			check(name, n, lines.Text())
		}
	}
	return lines.Err()
}

// The first table has the words of our own, the second those of the field.
func TestGlossaryIsShort(t *testing.T) {
	_, glossary, _ := strings.Cut(readFile(t, "CONTRIBUTING.md"), "\n## Words\n")
	glossary, _, _ = strings.Cut(glossary, "\n## ")
	tables := strings.Split(glossary, "| --- | --- | --- |\n")[1:]
	total := 0
	for i, table := range tables {
		table, _, _ = strings.Cut(table, "\n\n")
		words := strings.Count(table+"\n", "\n")
		if total += words; i == 0 && words > 10 || words == 0 {
			t.Errorf("table %d of the glossary has %d words, want 1 to 10 of our own", i+1, words)
		}
	}
	if len(tables) != 2 || total > 25 {
		t.Errorf("the glossary has %d words in %d tables, want at most 25 in two", total, len(tables))
	}
}
