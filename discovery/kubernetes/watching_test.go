package kubernetes

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// serveSliceThen responds to the first request with a slice, and then calls serveRest. For all
// later requests, it only calls serveRest.
func serveSliceThen(serveRest func(n int, w io.Writer, done <-chan struct{}) int) func(int, url.Values, io.Writer, <-chan struct{}) int {
	return func(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
		if n == 0 {
			writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), bookmark("7", true))
		}
		return serveRest(n, w, done)
	}
}

// A watch must request bookmarks and initial events, with a random timeout of 300 s to 599 s.
func TestWatchRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = serveSliceThen(func(n int, w io.Writer, done <-chan struct{}) int { writeAll(w, bookmark("9", false)); return 0 })
		_, stop := startSource(t, s, query{services: "web,web-canary"})
		time.Sleep(2 * time.Hour)
		stop()
		_, all := s.requests()
		if got := all[0].Values; got.Get("watch") != "1" || got.Get("allowWatchBookmarks") != "true" || got.Get("sendInitialEvents") != "true" ||
			got.Get("resourceVersionMatch") != "NotOlderThan" || got.Has("resourceVersion") || got.Get("labelSelector") != "kubernetes.io/service-name in (web,web-canary)" {
			t.Errorf("the first request is %v", got)
		}
		values := make(map[string]bool)
		for _, a := range all {
			var seconds int
			if _, err := fmt.Sscan(a.Get("timeoutSeconds"), &seconds); err != nil || seconds < 300 || seconds >= 600 {
				t.Errorf("timeoutSeconds is %q, want from 300 to 599", a.Get("timeoutSeconds"))
			}
			values[a.Get("timeoutSeconds")] = true
		}
		if len(all) < 10 || len(values) < 5 {
			t.Errorf("%d requests have the timeouts %v, want random ones", len(all), values)
		}
		if q := all[1].Values; q.Get("resourceVersion") != "9" || q.Has("sendInitialEvents") || q.Has("resourceVersionMatch") {
			t.Errorf("the watch is resumed with %v, want the version of the last bookmark", q)
		}
	})
}

// A watch that has ended must be resumed from the last version, the first time immediately and
// later with backoff.
func TestEndedWatchIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = serveSliceThen(func(n int, w io.Writer, done <-chan struct{}) int {
			if n == 0 {
				time.Sleep(time.Minute)
				return 0
			}
			return -1
		})
		_, stop := startSource(t, s, query{})
		time.Sleep(time.Hour)
		stop()
		kinds, all := s.requests()
		if !strings.HasPrefix(kinds, "all 7 7 7 7 7") {
			t.Errorf("the requests are %s, want all and then version 7", kinds)
		}
		for i, minPause := range []time.Duration{time.Minute, 800 * time.Millisecond, 1280 * time.Millisecond, 2 * time.Second} {
			after := all[i+1].at.Sub(all[i].at)
			if after < minPause || after > 2*minPause || i == 0 && after != minPause {
				t.Errorf("request %d came %v after the previous one, want %v or a little more", i+1, after, minPause)
			}
		}
		if n := len(all); n > 60 || n < 25 {
			t.Errorf("%d requests in an hour without a server, want one in two minutes", n)
		}
	})
}

// If a server rejects initial events with 400 or 422, all later requests to this server must be a
// list and then a watch, also for other Services.
func TestServerWithoutInitialEventsIsRemembered(t *testing.T) {
	for _, code := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity} {
		synctest.Test(t, func(t *testing.T) {
			newOldServer := func() *fakeAPIServer {
				s := &fakeAPIServer{}
				s.serve = func(n int, q url.Values, w io.Writer, done <-chan struct{}) int {
					switch {
					case q.Has("sendInitialEvents"):
						return code
					case !q.Has("watch"):
						writeAll(w, `{"kind":"EndpointSliceList","metadata":{"resourceVersion":"5"},"items":null}`)
						return 0
					}
					writeAll(w, "")
					return waitUntilDone(done)
				}
				return s
			}
			s, other := newOldServer(), newOldServer()
			_, stop := startSource(t, s, query{})
			synctest.Wait()
			_, stopSecond := startSource(t, s, query{services: "api"})
			_, stopOther := startSource(t, other, query{})
			time.Sleep(time.Second)
			first, _ := s.requests()
			second, _ := other.requests()
			if first != "all list 5 list 5" || second != "all list 5" {
				t.Errorf("%d: the requests are %s to one server and %s to the other", code, first, second)
			}
			stop()
			stopSecond()
			stopOther()
		})
	}
}

// If a server does not end a watch after timeoutSeconds, the client must cancel the watch 30 s
// later.
func TestHangingWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = serveSliceThen(func(n int, w io.Writer, done <-chan struct{}) int { writeAll(w, ""); return waitUntilDone(done) })
		l, stop := startSource(t, s, query{})
		time.Sleep(11 * time.Minute)
		stop()
		kinds, all := s.requests()
		var seconds int
		_, _ = fmt.Sscan(all[0].Get("timeoutSeconds"), &seconds)
		if want := time.Duration(seconds)*time.Second + 30*time.Second; all[1].at.Sub(all[0].at) != want || !strings.HasPrefix(kinds, "all 7") {
			t.Errorf("the requests are %s, the second after %v, want %v", kinds, all[1].at.Sub(all[0].at), want)
		}
		if got := l.takeReports(); !strings.Contains(got, "doubt since 0s: the API server has been silent for too long") {
			t.Errorf("the receiver got %q, want a doubt", got)
		}
	})
}

// If the server returns 403, the error must contain the missing verbs, the resource, the namespace,
// the account, and a command that prints a Role.
func TestForbiddenErrorNamesPermissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{serve: func(_ int, _ url.Values, w io.Writer, _ <-chan struct{}) int { return http.StatusForbidden }}
		rt := statusTransport{s, `{"kind":"Status","code":403,"message":"endpointslices.discovery.k8s.io is forbidden: User \"system:serviceaccount:shop:web\" cannot watch resource \"endpointslices\""}`}
		l, stop := startSource(t, rt, query{})
		time.Sleep(time.Second / 2)
		got := l.takeReports()
		stop()
		for _, part := range []string{"list and watch", "endpointslices.discovery.k8s.io", "namespace shop", "system:serviceaccount:shop:web", "docs/kubernetes.md"} {
			if !strings.Contains(got, part) {
				t.Errorf("the receiver got %q, want %q in it", got, part)
			}
		}
	})
}

type statusTransport struct {
	*fakeAPIServer
	body string
}

func (s statusTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.fakeAPIServer.RoundTrip(r)
	if err == nil && response.StatusCode != http.StatusOK {
		response.Body = io.NopCloser(strings.NewReader(s.body))
	}
	return response, err
}

// A burst of events must become one update, even if the events arrive in pieces while the removal
// of a slice is due.
func TestBurstIsOneUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = serveSliceThen(func(n int, w io.Writer, done <-chan struct{}) int {
			time.Sleep(time.Second)
			text := sliceEvent("ADDED", "b", "10.0.0.2") + sliceEvent("MODIFIED", "a", "10.0.0.3") + sliceEvent("ADDED", "c", "10.0.0.4")
			for _, part := range []string{text[:100], text[100:333], text[333:]} {
				writeAll(w, part)
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Second)
			writeAll(w, sliceEvent("DELETED", "c", ""))
			for i := range 50 {
				writeAll(w, sliceEvent("MODIFIED", "b", fmt.Sprint("10.0.1.", i)))
				time.Sleep(40 * time.Millisecond)
			}
			return waitUntilDone(done)
		})
		l, stop := startSource(t, s, query{})
		time.Sleep(1500 * time.Millisecond)
		if got, want := l.takeReports(), "0s update 0/10.0.0.1:80=healthy\n1.06s update 0/10.0.0.2:80=healthy 0/10.0.0.3:80=healthy 0/10.0.0.4:80=healthy"; got != want {
			t.Errorf("the receiver got %q, want %q", got, want)
		}
		time.Sleep(1500 * time.Millisecond)
		if n := strings.Count(l.takeReports(), "update"); n < 10 {
			t.Errorf("%d updates during continuous changes, want one every 50 ms to 80 ms", n)
		}
		stop()
	})
}
