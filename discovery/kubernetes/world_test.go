package kubernetes

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// fakeAPIServer is an API server for synctest bubbles. serve handles the requests for slices, and n
// is the number of the request. If serve returns a negative code, the request fails with a network
// error.
type fakeAPIServer struct {
	serve    func(n int, q url.Values, w io.Writer, done <-chan struct{}) (code int)
	services map[string]string // JSON of each Service; nil if the account must not read Services
	// retryAfter returns the header of this name; nil for none.
	retryAfter func(n int) string

	mu         sync.Mutex
	requestLog []request
}

type request struct {
	url.Values
	at   time.Time
	kind string // "all", "list", or the version at which the watch begins
}

func (s *fakeAPIServer) RoundTrip(r *http.Request) (*http.Response, error) {
	newResponse := func(code int, body io.ReadCloser) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: body}, nil
	}
	if _, name, found := strings.Cut(r.URL.Path, "/services/"); found {
		switch text, exists := s.services[name]; {
		case s.services == nil:
			return newResponse(http.StatusForbidden, http.NoBody)
		case !exists:
			return newResponse(http.StatusNotFound, http.NoBody)
		default:
			return newResponse(http.StatusOK, io.NopCloser(strings.NewReader(text)))
		}
	}
	q := r.URL.Query()
	kind := q.Get("resourceVersion")
	switch {
	case !q.Has("watch"):
		kind = "list"
	case kind == "":
		kind = "all"
	}
	s.mu.Lock()
	n := len(s.requestLog)
	s.requestLog = append(s.requestLog, request{q, time.Now(), kind})
	s.mu.Unlock()
	reader, writer := io.Pipe()
	first := &firstWrite{to: writer, codes: make(chan int, 1)}
	go func() {
		code := s.serve(n, q, first, r.Context().Done())
		if code == 0 {
			code = http.StatusOK
		}
		first.begin(code)
		_ = writer.Close()
	}()
	select {
	case code := <-first.codes:
		if code < 0 {
			return nil, fmt.Errorf("connection refused")
		}
		response, err := newResponse(code, reader)
		if s.retryAfter != nil {
			response.Header.Set("Retry-After", s.retryAfter(n))
		}
		return response, err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// firstWrite sends a status code to codes at the first Write, even if it is empty, because a
// response begins with the code.
type firstWrite struct {
	to    io.Writer
	once  sync.Once
	codes chan int
}

func (f *firstWrite) begin(code int) { f.once.Do(func() { f.codes <- code }) }

func (f *firstWrite) Write(b []byte) (int, error) {
	f.begin(http.StatusOK)
	if len(b) == 0 {
		return 0, nil
	}
	return f.to.Write(b)
}

func (s *fakeAPIServer) requests() (kinds string, all []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, a := range s.requestLog {
		list = append(list, a.kind)
	}
	return strings.Join(list, " "), append([]request(nil), s.requestLog...)
}

type reportLog struct {
	start      time.Time
	mu         sync.Mutex
	lines      []string
	lastAnswer discovery.Answer
}

func (l *reportLog) record(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprint(time.Since(l.start).Round(time.Millisecond), " ")+fmt.Sprintf(format, args...))
}

func (l *reportLog) takeReports() string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.lines, "\n")
	l.lines = nil
	return text
}

func (l *reportLog) answer() discovery.Answer {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastAnswer
}

func startSource(t *testing.T, rt http.RoundTripper, q query) (l *reportLog, stop func()) {
	t.Helper()
	l = &reportLog{start: time.Now()}
	withLock := func(f func()) {
		l.mu.Lock()
		defer l.mu.Unlock()
		f()
	}
	r := new(discovery.Receiver).With(discovery.Hooks{
		Update: func(a discovery.Answer) error {
			withLock(func() { l.lastAnswer = a; l.record("update %s", strings.TrimSpace(formatEndpoints(a)+" "+a.Why)) })
			return nil
		},
		Fail:    func(err error) { withLock(func() { l.record("fail %v", err) }) },
		Confirm: func() { withLock(func() { l.record("confirm") }) },
		Unconfirmed: func(err error, since time.Time) {
			withLock(func() { l.record("doubt since %v: %v", since.Sub(l.start).Round(time.Millisecond), err) })
		},
	})
	if q.namespace = "shop"; q.services == "" {
		q.services = "web"
	}
	s := source{q, server{host: "http://x", transport: rt}}
	started, err := discovery.Shared(s, linger, s).Start(r)
	if err != nil {
		t.Fatal(err)
	}
	return l, func() { started.Close(); time.Sleep(linger + time.Second) }
}

// sliceEvent returns an event with a slice. endpoints is a comma-separated list of addresses, or of
// JSON objects.
func sliceEvent(kind, name, endpoints string) string {
	if endpoints != "" && endpoints[0] != '{' {
		endpoints = `{"addresses":["` + strings.ReplaceAll(endpoints, ",", `"]},{"addresses":["`) + `"]}`
	}
	return fmt.Sprintf(`{"type":%q,"object":{"metadata":{"name":%q,"resourceVersion":"8","labels":{"kubernetes.io/service-name":"web"}},"addressType":"IPv4","endpoints":[%s],"ports":[{"name":"grpc","port":80}]}}`+"\n", kind, name, endpoints)
}

// bookmark returns a BOOKMARK event. If end is set, it is the bookmark after the initial events.
func bookmark(version string, end bool) string {
	annotations := ""
	if end {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"EndpointSlice","metadata":{"resourceVersion":%q%s}}}`+"\n", version, annotations)
}

func formatEndpoints(a discovery.Answer) string {
	var b strings.Builder
	for i, p := range a.Priorities {
		for _, l := range p.Localities {
			for _, e := range l.Endpoints {
				fmt.Fprintf(&b, "%d%s/%s=%v ", i, l.Zone, strings.Join(e.Addresses, "+"), e.Health)
			}
		}
	}
	return strings.TrimSpace(b.String())
}

func writeAll(w io.Writer, texts ...string) {
	for _, text := range texts {
		_, _ = io.WriteString(w, text)
	}
}

func waitUntilDone(done <-chan struct{}) int { <-done; return 0 }
