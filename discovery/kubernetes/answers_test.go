package kubernetes

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// reply is the server's response to one request. Its body ends after the time duration. If duration
// is 0 and the code is 200, the body does not end.
type reply struct {
	code       int
	retryAfter string
	body       string
	duration   time.Duration
}

type replyTransport struct {
	replies []reply

	mu       sync.Mutex
	start    time.Time
	requests []string // "all", "list", or the version at which the watch begins
	times    []time.Duration
}

func (s *replyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/api/v1/") { // a request for the Service, not for its EndpointSlices
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	kind := q.Get("resourceVersion")
	switch {
	case !q.Has("watch"):
		kind = "list"
	case kind == "":
		kind = "all"
	}
	if s.start.IsZero() {
		s.start = time.Now()
	}
	next := s.replies[min(len(s.requests), len(s.replies)-1)]
	s.requests, s.times = append(s.requests, kind), append(s.times, time.Since(s.start))
	reader, writer := io.Pipe()
	go func() {
		_, _ = io.WriteString(writer, next.body)
		if next.code == http.StatusOK && next.duration == 0 {
			<-r.Context().Done()
		}
		time.AfterFunc(next.duration, func() { _ = writer.Close() })
	}()
	return &http.Response{StatusCode: next.code, Header: http.Header{"Retry-After": {next.retryAfter}}, Body: reader}, nil
}

func (s *replyTransport) log() (requests string, times []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.requests, " "), s.times
}

// If the server replies without slices, the known slices must stay in use. The kind of reply must
// determine the next request and the pause before it.
func TestRepliesWithoutSlices(t *testing.T) {
	const all = `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"3"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]}],"ports":[{"port":80}]}}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	initialReply, openReply := reply{200, "", all, time.Minute}, reply{200, "", all, 0}
	const goneStatus = `{"kind":"Status","code":410,"message":"too old resource version"}`
	for what, test := range map[string]struct {
		replies  []reply
		want     string
		minPause time.Duration
	}{
		"gone, as a status":            {[]reply{initialReply, {410, "", goneStatus, 0}, openReply}, "all 7 all", 0},
		"gone, as an event":            {[]reply{initialReply, {200, "", `{"type":"ERROR","object":` + goneStatus + `}`, time.Second}, openReply}, "all 7 all", 0},
		"too large":                    {[]reply{initialReply, {504, "", `{"code":504,"message":"Too large resource version: 7, current: 5"}`, 0}, openReply}, "all 7 all", 0},
		"too large, by its cause":      {[]reply{initialReply, {504, "", `{"code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`, 0}, openReply}, "all 7 all", 0},
		"restored, then silent":        {[]reply{initialReply, {200, "", "", 5 * time.Minute}, openReply}, "all 7 all", 0},
		"ended early":                  {[]reply{initialReply, {200, "", "", 5 * time.Second}, openReply}, "all 7 7", 0},
		"an internal error":            {[]reply{initialReply, {500, "", "boom", 0}, openReply}, "all 7 7", time.Second},
		"busy":                         {[]reply{initialReply, {429, "7", "", 0}, openReply}, "all 7 7", 7 * time.Second},
		"busy for a day":               {[]reply{initialReply, {429, "86400", "", 0}, openReply}, "all 7 7", 2 * time.Minute},
		"busy at the beginning":        {[]reply{{429, "7", "", 0}, openReply}, "all all", 7 * time.Second},
		"busy, with a bad Retry-After": {[]reply{{429, "soon", "", 0}, openReply}, "all all", time.Second},
		"old, without initial events":  {[]reply{{422, "", "", 0}, {200, "", `{"metadata":{"resourceVersion":"5"},"items":[]}`, time.Millisecond}, openReply}, "all list 5", 0},
		"unauthorized":                 {[]reply{initialReply, {401, "", "", 0}, openReply}, "all 7 7", time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var updates []string
				note := func(format string, args ...any) {
					mu.Lock()
					defer mu.Unlock()
					updates = append(updates, fmt.Sprintf(format, args...))
				}
				r := new(discovery.Receiver).With(discovery.Hooks{
					Update:      func(a discovery.Answer) error { note("%s", formatEndpoints(a)); return nil },
					Fail:        func(err error) { note("failed: %v", err) },
					Confirm:     func() {},
					Unconfirmed: func(error, time.Time) {},
				})
				s := &replyTransport{replies: test.replies}
				started, err := source{query{namespace: "shop", services: "web"}, server{host: "http://x", transport: s}}.Start(r)
				if err != nil {
					t.Fatal(err)
				}
				for _, reply := range test.replies {
					time.Sleep(reply.duration)
				}
				time.Sleep(4 * time.Minute) // a watch without events is canceled after 5 to 10 minutes
				synctest.Wait()
				got, times := s.log()
				started.Close()
				if got != test.want {
					t.Fatalf("the requests are %s, want %s", got, test.want)
				}
				n := len(times) - 1
				if after := times[n] - times[n-1]; after < test.minPause || after > test.minPause+test.replies[n-1].duration+3*time.Second {
					t.Errorf("the last request came %v after the previous one, want %v plus at most a backoff", after, test.minPause)
				}
				mu.Lock()
				defer mu.Unlock()
				if strings.HasPrefix(test.want, "all 7") && (updates[0] != "0/10.0.0.1:80=healthy" || strings.Contains(strings.Join(updates, ""), "failed")) {
					t.Errorf("the receiver got %q, want the known endpoints and no failure", updates)
				}
			})
		})
	}
}
