package page_test

import (
	"flag"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/page"
)

const troubleshootingPage = "../../docs/howto/troubleshooting.md"

var writeReference = flag.Bool("reference", false, "write "+troubleshootingPage)

func TestTroubleshootingPageIsCurrent(t *testing.T) {
	want := troubleshooting(t)
	if *writeReference {
		if err := os.WriteFile(troubleshootingPage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(troubleshootingPage); err != nil || string(got) != want {
		t.Errorf("docs/howto/troubleshooting.md is out of date (%v): change internal/page/messages.txt, and run make reference", err)
	}
}

// troubleshooting returns the messages as Markdown: paragraphs with indented lines become rows.
func troubleshooting(t *testing.T) string {
	var page strings.Builder
	inTable := false
	for i, paragraph := range paragraphs(t) {
		words, rest, isRow := strings.Cut(paragraph, "\n  ")
		if i > 0 && (!isRow || !inTable) {
			page.WriteString("\n")
		}
		switch {
		case isRow && !inTable:
			page.WriteString("| words | cause | what to do |\n| --- | --- | --- |\n")
			fallthrough
		case isRow:
			page.WriteString("| `" + strings.ReplaceAll(words, "\n", "`, `") + "` | " + strings.ReplaceAll(rest, "\n  ", " | ") + " |\n")
		default:
			page.WriteString(paragraph + "\n")
		}
		inTable = isRow
	}
	return page.String()
}

func paragraphs(t *testing.T) []string {
	t.Helper()
	messages, err := os.ReadFile("messages.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(messages)), "\n\n")
}

func TestHelpExplainsMessages(t *testing.T) {
	answer := httptest.NewRecorder()
	page.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/?help", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	body := html.UnescapeString(answer.Body.String())
	for _, paragraph := range paragraphs(t) {
		lines := strings.Split(paragraph, "\n")
		if strings.HasPrefix(paragraph, "  ") || len(lines) < 3 || !strings.HasPrefix(lines[len(lines)-1], "  ") {
			continue
		}
		for _, words := range lines[:len(lines)-2] {
			if !strings.Contains(body, words+"<br>") {
				t.Errorf("the page does not explain %q", words)
			}
		}
	}
	for _, want := range []string{
		"<h2>eds:</h2>",
		"<span>the process hangs, or the port does not use TLS</span>",
		"<span>set Certificates or GetClientCertificate (mTLS)</span>",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.ContainsAny(body, "`") {
		t.Error("the page has Markdown")
	}
}
