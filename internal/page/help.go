package page

import (
	"bytes"
	_ "embed"
	"net/http"
	"regexp"
	"strings"
)

// The embedded text explains what users may see in the logs and errors of the library and command.
// Each paragraph starts with one or more messages, followed by their cause and what to do about it,
// both indented. The page can show them offline, and docs/howto/troubleshooting.md is generated from
// them.
//
//go:embed messages.txt
var messages string

// explained is a paragraph of messages. It has either just a heading, or all the other fields.
type explained struct {
	Heading     string
	Words       []string
	Cause, Cure string
}

var markup = regexp.MustCompile("`|" + `\[([^\]]*)\]\([^)]*\)`)

func explanations() []explained {
	var list []explained
	for paragraph := range strings.SplitSeq(markup.ReplaceAllString(messages, "$1"), "\n\n") {
		words, rest, indented := strings.Cut(paragraph, "\n  ")
		cause, cure, _ := strings.Cut(strings.TrimSpace(rest), "\n  ")
		switch {
		case indented:
			list = append(list, explained{Words: strings.Split(words, "\n"), Cause: cause, Cure: cure})
		case strings.HasPrefix(paragraph, "##"):
			list = append(list, explained{Heading: strings.TrimLeft(paragraph, "# ")})
		}
	}
	return list
}

func serveHelp(w http.ResponseWriter) {
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, "help", explanations()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, "text/html; charset=utf-8", page.Bytes())
}
