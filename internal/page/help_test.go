package page_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/page"
)

func TestHelpMatchesDocumentation(t *testing.T) {
	answer := httptest.NewRecorder()
	page.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/?help", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	var got []string
	for _, row := range regexp.MustCompile(`(?s)<tr><th scope="row".*?</tr>`).FindAllString(answer.Body.String(), -1) {
		cells := regexp.MustCompile(`<span>(.*?)</span>`).FindAllStringSubmatch(row, 2)
		got = append(got, html.UnescapeString(cells[0][1]+" | "+cells[1][1]))
	}
	document, err := os.ReadFile("../../docs/log.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(document), "## What to look at first\n\n| the reason | look at |\n| --- | --- |\n")
	table, _, ended := strings.Cut(table, "\n\n")
	if !found || !ended {
		t.Fatal("docs/log.md has no table under What to look at first")
	}
	table = strings.ReplaceAll(regexp.MustCompile(`\[(.*?)\]\(.*?\)`).ReplaceAllString(table, "$1"), "`", "")
	var want []string
	for row := range strings.Lines(table) {
		want = append(want, strings.Trim(row, "| \n"))
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("the page has\n%s\ndocs/log.md has\n%s", g, w)
	}
}
