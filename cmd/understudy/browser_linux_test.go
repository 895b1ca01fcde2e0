//go:build browser

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/chromium"
)

var desktop = chromium.View{Width: 1600, Height: 1000}

func openDemo(t *testing.T, v chromium.View, args ...string) (context.Context, *chromium.Page) {
	t.Helper()
	demo := startHeldDemo(t, t.TempDir(), args...)
	t.Cleanup(func() {
		demo.Process.Signal(os.Interrupt)
		if err := demo.Wait(); err != nil {
			t.Errorf("the demo ended with %v", err)
		}
	})
	browser, err := chromium.Start()
	must(t, err)
	t.Cleanup(func() {
		if err := browser.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	page, err := browser.Open(ctx, demo.page, v)
	must(t, err)
	return ctx, page
}

func awaitCondition(ctx context.Context, t *testing.T, page *chromium.Page, condition string) {
	t.Helper()
	waitCtx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := page.WaitFor(waitCtx, condition); err != nil {
		var text string
		page.Eval(ctx, `document.body.innerText`, &text)
		t.Fatalf("%v; the page says:\n%s", err, text)
	}
}

func headlineStartsWith(text string) string {
	return fmt.Sprintf(`document.querySelector(".headline")?.innerText.startsWith(%q)`, text)
}

func pressButton(ctx context.Context, t *testing.T, page *chromium.Page, label string) {
	t.Helper()
	must(t, page.Activate(ctx, fmt.Sprintf(`button[aria-label=%q]`, label)))
}

// detailsOpen returns the JavaScript condition that the named details element is open or, if open
// is false, closed.
func detailsOpen(name string, open bool) string {
	return fmt.Sprintf(`[...document.querySelectorAll("main details")].find(d => d.querySelector(".name")?.innerText === %q)?.open === %v`, name, open)
}

// When priority 0 is killed, the page shows that calls go to priority 1, and why. When priority 0
// is restored, the page shows that calls go to it again. The user does not have to reload the page.
func TestBrowserShowsFailover(t *testing.T) {
	ctx, page := openDemo(t, desktop)
	awaitCondition(ctx, t, page, headlineStartsWith("Calls go to p0 us-east/a, us-east/b"))
	pressButton(ctx, t, page, "Kill: p0")
	awaitCondition(ctx, t, page, headlineStartsWith("Calls go to p1 eu-west/a"))
	awaitCondition(ctx, t, page, `/Not p0 us-east\/a, us-east\/b: connection refused by 127\.0\.0\.1:/.test(document.querySelector(".why").innerText)`)
	awaitCondition(ctx, t, page, `document.querySelector(".said").innerText.startsWith("Killed p0 at ")`)
	awaitCondition(ctx, t, page, `[...document.querySelectorAll(".controls .state")].filter(e => e.innerText === "killed").length === 3`)
	if err := page.Key(ctx, chromium.Tab); err != nil { // the page is now at the anchor of the priority, so Tab moves to its first button
		t.Fatal(err)
	}
	awaitCondition(ctx, t, page, `document.activeElement.getAttribute("aria-label") === "Kill: p0"`)
	pressButton(ctx, t, page, "Restore: p0")
	awaitCondition(ctx, t, page, headlineStartsWith("Calls go to p0 us-east/a, us-east/b"))
	if problems := page.Problems(); len(problems) > 0 {
		t.Errorf("the browser complains: %s", strings.Join(problems, "\n"))
	}
}

// When calls move to another priority, the page unfolds the tree of that priority. Elements that
// the user has unfolded stay unfolded.
func TestBrowserUnfoldsPriorityInUse(t *testing.T) {
	ctx, page := openDemo(t, desktop)
	awaitCondition(ctx, t, page, headlineStartsWith("Calls go to p0 us-east/a, us-east/b"))
	must(t, page.Activate(ctx, `main details[data-key="events"] summary`))
	kill := `fetch("/do", {method: "POST", body: new URLSearchParams({"%s": "p0"})}).then(r => r.ok)`
	awaitCondition(ctx, t, page, fmt.Sprintf(kill, "kill"))
	awaitCondition(ctx, t, page, headlineStartsWith("Calls go to p1 eu-west/a"))
	awaitCondition(ctx, t, page, detailsOpen("p1 eu-west/a", true)+" && "+detailsOpen("p0 us-east/a, us-east/b", false))
	awaitCondition(ctx, t, page, fmt.Sprintf(kill, "restore"))
	awaitCondition(ctx, t, page, headlineStartsWith("Calls go to p0 us-east/a, us-east/b"))
	awaitCondition(ctx, t, page, detailsOpen("p0 us-east/a, us-east/b", true)+" && "+detailsOpen("p1 eu-west/a", false))
	awaitCondition(ctx, t, page, `document.querySelector('main details[data-key="events"]').open`)
	awaitCondition(ctx, t, page, `document.activeElement.closest("details")?.dataset.key === "events"`)
}

func TestBrowserOnPhoneWithoutScript(t *testing.T) {
	ctx, page := openDemo(t, chromium.View{Width: 360, Height: 740, NoScript: true})
	const fitsWidth = `document.documentElement.scrollWidth <= innerWidth`
	reload := func(condition string) {
		for !conditionHolds(ctx, t, page, condition) {
			if err := page.Activate(ctx, `.controls a[href="/"]`); err != nil && ctx.Err() != nil {
				t.Fatal(err)
			}
		}
	}
	reload(headlineStartsWith("Calls go to p0 us-east/a, us-east/b") + " && " + fitsWidth)
	pressButton(ctx, t, page, "Kill: p0")
	awaitCondition(ctx, t, page, `document.querySelector(".said").innerText.startsWith("Killed p0 at ")`)
	reload(headlineStartsWith("Calls go to p1 eu-west/a") + " && " + fitsWidth)
	must(t, page.Activate(ctx, `main .tree details summary`))
	awaitCondition(ctx, t, page, detailsOpen("p0 us-east/a, us-east/b", true)+" && "+fitsWidth)
}

// On a phone, the headline and the buttons are visible at the same time. The user sees the effect
// of a button without scrolling.
func TestBrowserShowsHeadlineAndButtonsTogether(t *testing.T) {
	ctx, page := openDemo(t, chromium.View{Width: 360, Height: 740})
	const bothVisible = ` && (([answer, button]) => answer.top >= 0 && button.bottom <= innerHeight && answer.bottom <= button.top)([".headline", %q].map(s => document.querySelector(s).getBoundingClientRect()))`
	awaitCondition(ctx, t, page, headlineStartsWith("Calls go to p0 us-east/a, us-east/b"))
	for _, test := range []struct{ press, want string }{
		{"Kill: p0", "Calls go to p1 eu-west/a"},
		{"Errors: p1", "Calls go to p1 eu-west/a"},
	} {
		pressButton(ctx, t, page, test.press)
		awaitCondition(ctx, t, page, headlineStartsWith(test.want)+fmt.Sprintf(bothVisible, fmt.Sprintf("button[aria-label=%q]", test.press)))
	}
}

// conditionHolds reports whether a JavaScript condition is true on the page. It returns false while
// the browser loads another page.
func conditionHolds(ctx context.Context, t *testing.T, page *chromium.Page, condition string) (result bool) {
	t.Helper()
	if err := page.Eval(ctx, condition, &result); err != nil && ctx.Err() != nil {
		t.Fatal(err)
	}
	return result
}

// The page shows why an endpoint is ejected, and the shares of the others.
func TestBrowserShowsErrors(t *testing.T) {
	ctx, page := openDemo(t, desktop)
	awaitCondition(ctx, t, page, headlineStartsWith("Calls go to p0 us-east/a, us-east/b"))
	pressButton(ctx, t, page, "Errors: us-east/b")
	awaitCondition(ctx, t, page, `/ejected by failures in a row \([A-Z_]+\), for \d+ s more/.test(document.querySelector("main tr.more")?.innerText)`)
	awaitCondition(ctx, t, page, detailsOpen("us-east/b", true)+" && "+headlineStartsWith("Calls go to p0 us-east/a, us-east/b"))
	pressButton(ctx, t, page, "Kill: us-east/b")
	awaitCondition(ctx, t, page, `document.querySelector(".said")?.innerText.startsWith("Killed us-east/b at ")`)
	// The first three shares are those of priority 0. The standby priority has shares, too.
	const shares = `[...document.querySelectorAll('main td[data-label="Share"]')].slice(0, 3).map(e => e.innerText.trim()).join(", ")`
	awaitCondition(ctx, t, page, shares+` === "66.7 %, 33.3 %, 0 %"`)
}
