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

// scripted is an API server for synctest bubbles. serve handles the requests for slices; n is the
// number of the request. If serve returns a negative code, the request fails with a network error.
type scripted struct {
	serve    func(n int, q url.Values, w io.Writer, ended <-chan struct{}) (code int)
	services map[string]string // JSON of each Service; nil if the account must not read Services

	mu    sync.Mutex
	asked []asked
}

type asked struct {
	url.Values
	at   time.Time
	kind string // "all", "list", or the version from which to watch
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	answered := func(code int, body io.ReadCloser) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: body}, nil
	}
	if _, name, found := strings.Cut(r.URL.Path, "/services/"); found {
		switch text, known := s.services[name]; {
		case s.services == nil:
			return answered(http.StatusForbidden, http.NoBody)
		case !known:
			return answered(http.StatusNotFound, http.NoBody)
		default:
			return answered(http.StatusOK, io.NopCloser(strings.NewReader(text)))
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
	n := len(s.asked)
	s.asked = append(s.asked, asked{q, time.Now(), kind})
	s.mu.Unlock()
	reader, writer := io.Pipe()
	first := &firstWrite{to: writer, began: make(chan int, 1)}
	go func() {
		code := s.serve(n, q, first, r.Context().Done())
		if code == 0 {
			code = http.StatusOK
		}
		first.begin(code)
		_ = writer.Close()
	}()
	select {
	case code := <-first.began:
		if code < 0 {
			return nil, fmt.Errorf("connection refused")
		}
		return answered(code, reader)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// firstWrite sends a status code to began at the first Write, even an empty one, because a response
// begins with it.
type firstWrite struct {
	to    io.Writer
	once  sync.Once
	began chan int
}

func (f *firstWrite) begin(code int) { f.once.Do(func() { f.began <- code }) }

func (f *firstWrite) Write(b []byte) (int, error) {
	f.begin(http.StatusOK)
	if len(b) == 0 {
		return 0, nil
	}
	return f.to.Write(b)
}

func (s *scripted) requests() (kinds string, all []asked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, a := range s.asked {
		list = append(list, a.kind)
	}
	return strings.Join(list, " "), append([]asked(nil), s.asked...)
}

type listener struct {
	began time.Time
	mu    sync.Mutex
	lines []string
	last  discovery.Answer
}

func (l *listener) note(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprint(time.Since(l.began).Round(time.Millisecond), " ")+fmt.Sprintf(format, args...))
}

func (l *listener) said() string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.lines, "\n")
	l.lines = nil
	return text
}

func (l *listener) answer() discovery.Answer {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func listen(t *testing.T, rt http.RoundTripper, q query) (l *listener, stop func()) {
	t.Helper()
	l = &listener{began: time.Now()}
	locked := func(f func()) {
		l.mu.Lock()
		defer l.mu.Unlock()
		f()
	}
	r := new(discovery.Receiver).With(discovery.Hooks{
		Update: func(a discovery.Answer) error {
			locked(func() { l.last = a; l.note("update %s", flat(a)) })
			return nil
		},
		Fail:    func(err error) { locked(func() { l.note("fail %v", err) }) },
		Confirm: func() { locked(func() { l.note("confirm") }) },
		Unconfirmed: func(err error, since time.Time) {
			locked(func() { l.note("doubt since %v: %v", since.Sub(l.began).Round(time.Millisecond), err) })
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

// at returns the event of a slice. endpoints is a comma-separated list of addresses, or a list of
// JSON objects.
func at(kind, name, endpoints string) string {
	if endpoints != "" && endpoints[0] != '{' {
		endpoints = `{"addresses":["` + strings.ReplaceAll(endpoints, ",", `"]},{"addresses":["`) + `"]}`
	}
	return fmt.Sprintf(`{"type":%q,"object":{"metadata":{"name":%q,"resourceVersion":"8","labels":{"kubernetes.io/service-name":"web"}},"addressType":"IPv4","endpoints":[%s],"ports":[{"name":"grpc","port":80}]}}`+"\n", kind, name, endpoints)
}

// bookmark returns a BOOKMARK event. If end is set, it is the one after the initial events.
func bookmark(version string, end bool) string {
	annotations := ""
	if end {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"EndpointSlice","metadata":{"resourceVersion":%q%s}}}`+"\n", version, annotations)
}

func send(w io.Writer, texts ...string) {
	for _, text := range texts {
		_, _ = io.WriteString(w, text)
	}
}

func hold(ended <-chan struct{}) int { <-ended; return 0 }
