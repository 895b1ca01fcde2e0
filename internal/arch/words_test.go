package arch

import (
	"os"
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
	for _, file := range append(sources(t, "."), documents(t, os.DirFS("../.."))...) {
		if file == "internal/arch/words_test.go" {
			continue
		}
		inCode := false
		n := 0
		for line := range strings.Lines(readFile(t, file)) {
			n++
			text := line
			if strings.HasSuffix(file, ".go") {
				line, text, _ = strings.Cut(line, "//")
				checkNames(t, file, n, line)
			} else if strings.HasPrefix(line, "```") {
				inCode = !inCode
			}
			if found := all.FindString(quoted.ReplaceAllString(text, "")); found != "" && !inCode {
				i := slices.IndexFunc(patterns, func(p string) bool { return regexp.MustCompile(`(?i)^(?:` + p + `)$`).MatchString(found) })
				t.Errorf("%s:%d: %q: write %s", file, n, found, retired[i].use)
			}
		}
	}
}

var nameWord = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

func checkNames(t *testing.T, file string, n int, line string) {
	t.Helper()
	if slices.ContainsFunc(unrenamed, func(dir string) bool { return strings.HasPrefix(file, dir) }) {
		return
	}
	for _, word := range nameWord.FindAllString(quoted.ReplaceAllString(line, ""), -1) {
		if slices.Contains(retiredNames, strings.ToLower(word)) {
			t.Errorf("%s:%d: %s is not in the glossary of CONTRIBUTING.md", file, n, word)
		}
	}
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
