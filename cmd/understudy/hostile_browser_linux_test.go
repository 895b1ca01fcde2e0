//go:build browser

package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/debug"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/chromium"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

const hostileName = `"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>` + "\x1b[31m\u202e\u2066\x00"

type hostileSource struct{}

func (hostileSource) Check(bool) error { return nil }

func (hostileSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	long := hostileName + strings.Repeat("x", 10_000)
	err := r.Update(flat.Answer(
		flat.Endpoint{Locality: long, Address: "127.0.0.1:1", Weight: 1},
		flat.Endpoint{Priority: 1, Locality: hostileName + "/" + hostileName, Address: "127.0.0.1:2", Weight: 1},
	))
	r.Fail(errors.New(long))
	return discovery.Started{}, err
}

// The page shows names and errors that contain HTML or control characters as text that fits the
// screen of a phone. If the page inserted them as HTML, its Content-Security-Policy would block
// their scripts.
func TestBrowserShowsHostileNamesAsText(t *testing.T) {
	builder := given.NewBuilder("evil", func(*discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Name: hostileName, Source: hostileSource{}}}, nil
	})
	cc, err := grpc.NewClient("evil:///"+strings.Repeat("%3Cb%3E%E2%80%AE", 500), grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer cc.Close()
	cc.Connect()
	server := httptest.NewServer(debug.Handler())
	defer server.Close()
	browser, err := chromium.Start()
	must(t, err)
	defer browser.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for _, width := range []int{360, 1100} {
		page, err := browser.Open(ctx, server.URL, chromium.View{Width: width, Height: 800})
		must(t, err)
		awaitCondition(ctx, t, page, `document.body.innerText.includes("No priority can take calls.")`)
		page.Eval(ctx, `document.querySelectorAll("details").forEach(d => d.open = true)`, new(any))
		for _, condition := range []string{
			`document.querySelectorAll("main img, main script, main b").length === 0`,
			`document.body.innerText.includes('"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\\x1b[31m\\u202e\\u2066\\x00')`,
			`!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText)`,
			`!document.body.innerText.includes("x".repeat(600))`,
			`document.documentElement.scrollWidth <= innerWidth`,
			`typeof window.hacked === "undefined"`,
		} {
			awaitCondition(ctx, t, page, condition)
		}
		if problems := page.Problems(); len(problems) > 0 {
			t.Errorf("the browser complains: %s", strings.Join(problems, "\n"))
		}
		awaitCondition(ctx, t, page, `(() => {
			const script = document.createElement("script");
			script.textContent = "window.hacked = 1";
			document.body.append(script);
			document.body.insertAdjacentHTML("beforeend", "<img src=y onerror='window.hacked = 1'>");
			return true;
		})()`)
		awaitCondition(ctx, t, page, `new Promise(done => setTimeout(() => done(typeof window.hacked === "undefined"), 300))`)
		if problems := strings.Join(page.Problems(), "\n"); !strings.Contains(problems, "Content Security Policy") {
			t.Errorf("the browser ran what the policy forbids, or says nothing: %s", problems)
		}
	}
}
