package page

import (
	"strings"
	"testing"
	"testing/synctest"
)

// The page must expand the priority in use and all of its localities, even a locality without a
// READY endpoint. It must not expand other priorities. Each summary must count the READY endpoints.
func TestPageExpandsLocalitiesInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true, "c": true}}
		openChannel(t, s, newEndpoint(0, "us-east/a", "a", 1), newEndpoint(0, "us-east/a", "b", 1), newEndpoint(0, "us-east/b", "d", 1), newEndpoint(1, "eu-west", "c", 1))
		_, page := channel(t)
		for name, want := range map[string]struct {
			open bool
			text string
		}{
			"p0 us-east/a, us-east/b": {true, "· 1 of 3 endpoints ready"},
			"us-east/a":               {true, "· 1 of 2 endpoints ready"},
			"us-east/b":               {true, "· 0 of 1 endpoints ready"},
			"p1 eu-west":              {false, ""},
		} {
			before, summary, found := strings.Cut(page, `<span class="name">`+name+`</span>`)
			if !found {
				t.Fatalf("the page has no %s:\n%s", name, page)
			}
			summary, _, _ = strings.Cut(summary, "</summary>")
			details := before[strings.LastIndex(before, "<details"):]
			if open := strings.Contains(details, " open>"); open != want.open {
				t.Errorf("%s: unfolded is %v, want %v: %s", name, open, want.open, details)
			}
			if !strings.Contains(summary, want.text) || want.text == "" && strings.Contains(summary, "endpoints ready") {
				t.Errorf("%s: does not contain %q: %s", name, want.text, summary)
			}
		}
	})
}
