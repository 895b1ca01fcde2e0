package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	_ "github.com/understudy-lb/understudy/debug" // makes the channels of this process show up on the page
	"github.com/understudy-lb/understudy/internal/page"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// The server may be hostile. Within these limits, a page takes less than 100 MB of memory. A real
// program's page is under 1 MB.
const (
	maxPageBytes  = 8 << 20
	maxPageValues = 300_000 // total in all lists and objects
	maxDepth      = 16      // levels of the tree
	pageTimeout   = 10 * time.Second
)

// invalidPageError means that the page isn't from debug.Handler, so there's no point in trying
// again.
type invalidPageError struct{ error }

func localPage(context.Context) (*page.Page, error) { return page.Now(), nil }

// openPage also returns the URL without user information and query, which is all that we may show
// in errors.
func openPage(target string, t TLS) (fetch func(context.Context) (*page.Page, error), redacted string, err error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, "", errors.New("the URL is invalid or has no host, want one such as http://127.0.0.1:8080/debug/understudy/")
	}
	config, err := t.config()
	if err != nil {
		return nil, "", err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.MaxResponseHeaderBytes = config, 64<<10
	client := &http.Client{Transport: transport, Timeout: pageTimeout, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) > 5 || next.URL.Host != u.Host || next.URL.Scheme != u.Scheme {
			return fmt.Errorf("the server redirects to %s, want the page itself", redact(next.URL))
		}
		return nil
	}}
	u.RawQuery, u.Fragment = "format=json&"+u.RawQuery, ""
	return func(ctx context.Context) (*page.Page, error) { return fetchPage(ctx, client, u) }, redact(u), nil
}

func redact(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func fetchPage(ctx context.Context, client *http.Client, u *url.URL) (*page.Page, error) {
	response, err := client.Do((&http.Request{Method: http.MethodGet, URL: u}).WithContext(ctx))
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the URL may contain a password
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	if code := response.StatusCode; code != http.StatusOK {
		err = fmt.Errorf("the server answers %s, want a page from debug.Handler", response.Status)
		if code/100 == 4 && code != http.StatusTooManyRequests {
			err = invalidPageError{err}
		}
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPageBytes+1))
	if err != nil {
		return nil, err
	}
	return parse(body)
}

func parse(body []byte) (*page.Page, error) {
	// Before decoding anything, we check how many values there can be. Each one comes after a
	// bracket or a comma.
	values := bytes.Count(body, []byte("{")) + bytes.Count(body, []byte("[")) + bytes.Count(body, []byte(","))
	if len(body) > maxPageBytes || values > maxPageValues {
		return nil, invalidPageError{fmt.Errorf("the page has more than %d bytes or %d values", maxPageBytes, maxPageValues)}
	}
	var page page.Page
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, invalidPageError{fmt.Errorf("the page is not JSON from debug.Handler: %s", printable.Line(err.Error(), 200))}
	}
	if page.Channels == nil || slices.ContainsFunc(page.Channels, isInvalid) {
		return nil, invalidPageError{fmt.Errorf("the page has no list of channels, a null in a list, or more than %d levels: want JSON from debug.Handler", maxDepth)}
	}
	return &page, nil
}

func isInvalid(c *page.Channel) bool { return c == nil || isTooDeep(c.Tree, maxDepth) }

func isTooDeep(p *page.Policy, levels int) bool {
	return p != nil && (levels == 0 || slices.ContainsFunc(p.Children, func(child *page.Child) bool {
		return child == nil || isTooDeep(child.Below, levels-1)
	}))
}
