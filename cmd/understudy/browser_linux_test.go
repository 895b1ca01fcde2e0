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

var wide = chromium.View{Width: 1600, Height: 1000}

func browse(t *testing.T, v chromium.View, args ...string) (context.Context, *chromium.Page) {
	t.Helper()
	demo := hold(t, t.TempDir(), args...)
	t.Cleanup(func() {
		demo.Process.Signal(os.Interrupt)
		if err := demo.Wait(); err != nil {
			t.Errorf("the demo ended with %v", err)
		}
	})
	browser, err := chromium.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := browser.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	page, err := browser.Open(ctx, demo.page, v)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, page
}

func until(ctx context.Context, t *testing.T, page *chromium.Page, condition string) {
	t.Helper()
	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := page.Until(waiting, condition); err != nil {
		var text string
		page.Eval(ctx, `document.body.innerText`, &text)
		t.Fatalf("%v; the page says:\n%s", err, text)
	}
}

func says(text string) string {
	return fmt.Sprintf(`document.querySelector(".headline")?.innerText.startsWith(%q)`, text)
}

func press(ctx context.Context, t *testing.T, page *chromium.Page, label string) {
	t.Helper()
	if err := page.Press(ctx, fmt.Sprintf(`button[aria-label=%q]`, label)); err != nil {
		t.Fatal(err)
	}
}

// unfolded returns a JavaScript condition on whether the named element is unfolded.
func unfolded(name string, is bool) string {
	return fmt.Sprintf(`[...document.querySelectorAll("main details")].find(d => d.querySelector(".name")?.innerText === %q)?.open === %v`, name, is)
}

// When priority 0 is killed, the page shows that calls go to priority 1, and why. When priority 0
// is restored, it shows that calls are back. Neither needs a reload.
func TestAFailoverIsSeenInTheBrowser(t *testing.T) {
	ctx, page := browse(t, wide)
	until(ctx, t, page, says("Calls go to p0 us-east/a, us-east/b"))
	press(ctx, t, page, "Kill: p0 us-east/a, us-east/b")
	until(ctx, t, page, says("Calls go to p1 eu-west/a"))
	until(ctx, t, page, `/Not p0 us-east\/a, us-east\/b: connection refused by 127\.0\.0\.1:/.test(document.querySelector(".why").innerText)`)
	until(ctx, t, page, `document.querySelector(".said").innerText.startsWith("Killed p0 us-east/a, us-east/b at ")`)
	until(ctx, t, page, `[...document.querySelectorAll(".controls .state")].filter(e => e.innerText === "killed").length === 3`)
	if err := page.Key(ctx, chromium.Tab); err != nil { // after the update of the page, the button must still have the keyboard focus
		t.Fatal(err)
	}
	until(ctx, t, page, `document.activeElement.getAttribute("aria-label") === "Kill: p0 us-east/a, us-east/b"`)
	press(ctx, t, page, "Restore: p0 us-east/a, us-east/b")
	until(ctx, t, page, says("Calls go to p0 us-east/a, us-east/b"))
	if problems := page.Problems(); len(problems) > 0 {
		t.Errorf("the browser complains: %s", strings.Join(problems, "\n"))
	}
}

// When calls move to another priority, the page unfolds it. Elements that the user has unfolded
// stay unfolded.
func TestWhatIsInUseIsUnfoldedInTheBrowser(t *testing.T) {
	ctx, page := browse(t, wide)
	until(ctx, t, page, says("Calls go to p0 us-east/a, us-east/b"))
	if err := page.Press(ctx, `main details[data-key="events"] summary`); err != nil {
		t.Fatal(err)
	}
	kill := `fetch("/do", {method: "POST", body: new URLSearchParams({do: "%s", to: "priority 0"})}).then(r => r.ok)`
	until(ctx, t, page, fmt.Sprintf(kill, "kill"))
	until(ctx, t, page, says("Calls go to p1 eu-west/a"))
	until(ctx, t, page, unfolded("p1 eu-west/a", true)+" && "+unfolded("p0 us-east/a, us-east/b", false))
	until(ctx, t, page, fmt.Sprintf(kill, "restore"))
	until(ctx, t, page, says("Calls go to p0 us-east/a, us-east/b"))
	until(ctx, t, page, unfolded("p0 us-east/a, us-east/b", true)+" && "+unfolded("p1 eu-west/a", false))
	until(ctx, t, page, `document.querySelector('main details[data-key="events"]').open`)
	until(ctx, t, page, `document.activeElement.closest("details")?.dataset.key === "events"`)
}

func TestWithoutScriptOnAPhoneInTheBrowser(t *testing.T) {
	ctx, page := browse(t, chromium.View{Width: 360, Height: 740, NoScript: true})
	const fits = `document.documentElement.scrollWidth <= innerWidth`
	reload := func(until string) {
		for !holds(ctx, t, page, until) {
			if err := page.Press(ctx, `.controls a[href="/"]`); err != nil && ctx.Err() != nil {
				t.Fatal(err)
			}
		}
	}
	reload(says("Calls go to p0 us-east/a, us-east/b") + " && " + fits)
	press(ctx, t, page, "Kill: p0 us-east/a, us-east/b")
	until(ctx, t, page, `document.querySelector(".said").innerText.startsWith("Killed p0 us-east/a, us-east/b at ")`)
	reload(says("Calls go to p1 eu-west/a") + " && " + fits)
	if err := page.Press(ctx, `main .tree details summary`); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, page, unfolded("p0 us-east/a, us-east/b", true)+" && "+fits)
}

// On a phone, the headline and the buttons are visible at the same time. The user sees the effect
// of a button without scrolling.
func TestTheAnswerIsSeenWhereTheButtonIsPressedInTheBrowser(t *testing.T) {
	ctx, page := browse(t, chromium.View{Width: 360, Height: 740})
	const seen = ` && (([answer, button]) => answer.top >= 0 && button.bottom <= innerHeight && answer.bottom <= button.top)([".headline", %q].map(s => document.querySelector(s).getBoundingClientRect()))`
	until(ctx, t, page, says("Calls go to p0 us-east/a, us-east/b"))
	for _, test := range []struct{ press, want string }{
		{"Kill: p0 us-east/a, us-east/b", "Calls go to p1 eu-west/a"},
		{"Errors: p1 eu-west/a", "Calls go to p1 eu-west/a"},
	} {
		press(ctx, t, page, test.press)
		until(ctx, t, page, says(test.want)+fmt.Sprintf(seen, fmt.Sprintf("button[aria-label=%q]", test.press)))
	}
}

// holds reports whether a condition is true on the page. It is false while the browser loads
// another page.
func holds(ctx context.Context, t *testing.T, page *chromium.Page, condition string) (does bool) {
	t.Helper()
	if err := page.Eval(ctx, condition, &does); err != nil && ctx.Err() != nil {
		t.Fatal(err)
	}
	return does
}

// The page shows why an endpoint is ejected. The shares follow the weights that the user enters.
func TestErrorsAndWeightsAreSeenInTheBrowser(t *testing.T) {
	ctx, page := browse(t, wide)
	until(ctx, t, page, says("Calls go to p0 us-east/a, us-east/b"))
	press(ctx, t, page, "Errors: us-east/b")
	until(ctx, t, page, `/ejected by failures in a row, for \d+ s more/.test(document.querySelector("main tr.more")?.innerText)`)
	until(ctx, t, page, unfolded("us-east/b", true)+" && "+says("Calls go to p0 us-east/a, us-east/b"))
	press(ctx, t, page, "Kill: us-east/b")
	until(ctx, t, page, `document.querySelector(".said")?.innerText.startsWith("Killed us-east/b at ")`)
	// Only the first three shares belong to the first priority. The standby has shares, too.
	const shares = `[...document.querySelectorAll('main td[data-label="Share"]')].slice(0, 3).map(e => e.innerText.trim()).join(", ")`
	until(ctx, t, page, shares+` === "66.7 %, 33.3 %, 0 %"`)
	until(ctx, t, page, `(document.querySelectorAll('.controls input[type="number"]')[1].value = 3) === 3`)
	if err := page.Press(ctx, `#weights button`); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, page, `document.querySelector(".said").innerText.startsWith("Changed the weights at ")`)
	until(ctx, t, page, shares+` === "75 %, 25 %, 0 %"`)
}
