package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/understudy-lb/understudy/internal/page"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Limits for a debug page, because the server may be hostile. Within these limits, a page takes
// less than 100 MB of memory. The page of a real program is smaller than 1 MB.
const (
	maxPageBytes  = 8 << 20
	maxPageValues = 300_000 // number of values in all lists and objects
	pageTimeout   = 10 * time.Second
	maxTextBytes  = 500
)

type pageFetcher interface {
	fetch(context.Context) (*page.Page, error)
	// pause returns the time to wait before the next fetch, given the duration of the last fetch.
	pause(lastFetch time.Duration) time.Duration
}

// invalidPageError means that a response is not a page of debug.Handler, so that a retry would not
// help.
type invalidPageError struct{ error }

type localPages struct{ handler http.Handler }

func (o localPages) fetch(ctx context.Context) (*page.Page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/?format=json", nil)
	if err != nil {
		return nil, err
	}
	var response responseBuffer
	o.handler.ServeHTTP(&response, request)
	return parse(response.Bytes())
}

func (o localPages) pause(lastFetch time.Duration) time.Duration {
	return max(250*time.Millisecond, 10*lastFetch)
}

type responseBuffer struct{ bytes.Buffer }

func (a *responseBuffer) Header() http.Header { return http.Header{} }
func (a *responseBuffer) WriteHeader(int)     {}

type remotePage struct {
	url         string
	redactedURL string
	client      *http.Client
}

func newRemote(target string, transport *http.Transport) (*remotePage, error) {
	// The error must not contain the URL, because the URL may contain a password or a token.
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, errors.New("the URL is invalid or has no host, want one such as http://127.0.0.1:8080/debug/understudy/")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%s: the query of the URL is invalid, want one such as ?channel=3", redactURL(u))
	}
	target = redactURL(u)
	query.Set("format", "json")
	u.RawQuery, u.Fragment = query.Encode(), ""
	client := &http.Client{Transport: transport, Timeout: pageTimeout, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if first := via[0].URL; len(via) > 5 || next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
			return fmt.Errorf("the server redirects to %s, want the page itself", redactURL(next.URL))
		}
		return nil
	}}
	return &remotePage{u.String(), target, client}, nil
}

// redactURL returns a URL without secrets. It removes the user information, and everything in the
// query except the channel number.
func redactURL(u *url.URL) string {
	redacted := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if channel, err := strconv.ParseUint(u.Query().Get("channel"), 10, 64); err == nil {
		redacted.RawQuery = fmt.Sprint("channel=", channel)
	}
	return redacted.String()
}

func (r *remotePage) fetch(ctx context.Context) (*page.Page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // omit the URL, which may contain a password
		}
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	if response.StatusCode != http.StatusOK {
		err := fmt.Errorf("the server answers %s, want a page from debug.Handler", response.Status)
		if response.StatusCode/100 == 4 && response.StatusCode != http.StatusTooManyRequests {
			return nil, invalidPageError{err}
		}
		return nil, err
	}
	if contentType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); contentType != "application/json" {
		return nil, invalidPageError{fmt.Errorf("the server answers with %.40q, want JSON from debug.Handler", contentType)}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPageBytes+1))
	if err != nil {
		return nil, err
	}
	return parse(body)
}

func (r *remotePage) pause(lastFetch time.Duration) time.Duration {
	return max(time.Second, 10*lastFetch)
}

// parse decodes a page. It first counts the brackets and commas, because each value follows one of
// them, and rejects a page with too many values.
func parse(body []byte) (*page.Page, error) {
	if len(body) > maxPageBytes {
		return nil, invalidPageError{fmt.Errorf("the page has more than %d bytes", maxPageBytes)}
	}
	values := 0
	for _, b := range body {
		if b == '{' || b == '[' || b == ',' {
			values++
		}
	}
	if values > maxPageValues {
		return nil, invalidPageError{fmt.Errorf("the page has %d values, want at most %d", values, maxPageValues)}
	}
	var page page.Page
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, invalidPageError{fmt.Errorf("the page is not JSON from debug.Handler: %s", printable.Line(err.Error(), 200))}
	}
	if page.Channels == nil {
		return nil, invalidPageError{errors.New("the page has no list of channels, want JSON from debug.Handler")}
	}
	repair(&page)
	return &page, nil
}

// repair removes null elements and excessively deep levels. debug.Handler never sends them, and
// other code need not handle them.
func repair(page *page.Page) {
	kept := page.Channels[:0]
	for _, c := range page.Channels {
		if c != nil {
			repairPolicy(c.Tree, 0)
			kept = append(kept, c)
		}
	}
	page.Channels = kept
}

func repairPolicy(p *page.Policy, depth int) {
	if p == nil {
		return
	}
	kept := p.Children[:0]
	for _, child := range p.Children {
		if child == nil {
			continue
		}
		if depth > 2*maxDepth {
			child.Below = nil
		}
		repairPolicy(child.Below, depth+1)
		kept = append(kept, child)
	}
	p.Children = kept
}
