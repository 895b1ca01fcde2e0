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

	"github.com/understudy-lb/understudy/internal/debugpage"
	"github.com/understudy-lb/understudy/internal/printable"
)

// Limits for a page, because its server may be hostile. With these, a page takes less than 100 MB
// of memory. The page of a real program is smaller than 1 MB.
const (
	largestPage  = 8 << 20 // bytes
	mostParts    = 300_000 // values in all lists and objects
	pageTimeout  = 10 * time.Second
	longestError = 500
)

type pages interface {
	fetch(context.Context) (*debugpage.Page, error)
	// pause returns the time to wait before the next fetch. took is the duration of the last one.
	pause(took time.Duration) time.Duration
}

// notThePage means that the response is not a page of package debug. A retry would not help.
type notThePage struct{ error }

type own struct{ handler http.Handler }

func (o own) fetch(ctx context.Context) (*debugpage.Page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/?format=json", nil)
	if err != nil {
		return nil, err
	}
	var answer answer
	o.handler.ServeHTTP(&answer, request)
	return parse(answer.Bytes())
}

func (o own) pause(took time.Duration) time.Duration { return max(250*time.Millisecond, 10*took) }

type answer struct{ bytes.Buffer }

func (a *answer) Header() http.Header { return http.Header{} }
func (a *answer) WriteHeader(int)     {}

type remote struct {
	url    string
	shown  string // the URL without secrets
	client *http.Client
}

func newRemote(target string, transport *http.Transport) (*remote, error) {
	// The error must not contain the URL, which may have a password or a token in it.
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, errors.New("the URL is wrong or has no host, want one such as http://127.0.0.1:8080/debug/understudy/")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%s: the query of the URL is wrong, want one such as ?channel=3", shown(u))
	}
	target = shown(u)
	query.Set("format", "json")
	u.RawQuery, u.Fragment = query.Encode(), ""
	client := &http.Client{Transport: transport, Timeout: pageTimeout, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if first := via[0].URL; len(via) > 5 || next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
			return fmt.Errorf("the server sends us to %s, want the page itself", shown(next.URL))
		}
		return nil
	}}
	return &remote{u.String(), target, client}, nil
}

// shown returns a URL without secrets. It drops the user, and the query except the channel number.
func shown(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if channel, err := strconv.ParseUint(u.Query().Get("channel"), 10, 64); err == nil {
		shown.RawQuery = fmt.Sprint("channel=", channel)
	}
	return shown.String()
}

func (r *remote) fetch(ctx context.Context) (*debugpage.Page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL, which is shown anyway and may contain a password
		}
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	if response.StatusCode != http.StatusOK {
		err := fmt.Errorf("the server answers %s, want a page of debug.Handler", response.Status)
		if response.StatusCode/100 == 4 && response.StatusCode != http.StatusTooManyRequests {
			return nil, notThePage{err}
		}
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "application/json" {
		return nil, notThePage{fmt.Errorf("the server answers with %.40q, want JSON of debug.Handler", kind)}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, largestPage+1))
	if err != nil {
		return nil, err
	}
	return parse(body)
}

func (r *remote) pause(took time.Duration) time.Duration { return max(time.Second, 10*took) }

// parse reads a page. It first bounds the number of values: each one follows a bracket or a comma.
func parse(body []byte) (*debugpage.Page, error) {
	if len(body) > largestPage {
		return nil, notThePage{fmt.Errorf("the page has more than %d bytes", largestPage)}
	}
	parts := 0
	for _, b := range body {
		if b == '{' || b == '[' || b == ',' {
			parts++
		}
	}
	if parts > mostParts {
		return nil, notThePage{fmt.Errorf("the page has %d values, want at most %d", parts, mostParts)}
	}
	var page debugpage.Page
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, notThePage{fmt.Errorf("the page is no JSON of debug.Handler: %s", printable.Line(err.Error(), 200))}
	}
	if page.Channels == nil {
		return nil, notThePage{errors.New("the page has no list of channels, want JSON of debug.Handler")}
	}
	repair(&page)
	return &page, nil
}

// repair removes everything that debug.Handler never sends, so that other code need not handle it.
func repair(page *debugpage.Page) {
	kept := page.Channels[:0]
	for _, c := range page.Channels {
		if c != nil {
			repairPolicy(c.Tree, 0)
			kept = append(kept, c)
		}
	}
	page.Channels = kept
}

func repairPolicy(p *debugpage.Policy, depth int) {
	if p == nil {
		return
	}
	kept := p.Children[:0]
	for _, child := range p.Children {
		if child == nil {
			continue
		}
		if depth > 2*deepest {
			child.Below = nil
		}
		repairPolicy(child.Below, depth+1)
		kept = append(kept, child)
	}
	p.Children = kept
}
