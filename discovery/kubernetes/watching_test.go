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

// wellThen responds to the first request with a slice, and then calls then. For all later requests,
// it only calls then.
func wellThen(then func(n int, w io.Writer, ended <-chan struct{}) int) func(int, url.Values, io.Writer, <-chan struct{}) int {
	return func(n int, _ url.Values, w io.Writer, ended <-chan struct{}) int {
		if n == 0 {
			send(w, at("ADDED", "a", "10.0.0.1"), bookmark("7", true))
		}
		return then(n, w, ended)
	}
}

// A watch must request bookmarks and initial events, with a random timeout of 300 s to 599 s.
func TestWhatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.serve = wellThen(func(n int, w io.Writer, ended <-chan struct{}) int { send(w, bookmark("9", false)); return 0 })
		_, stop := listen(t, s, query{services: "web,web-canary"})
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

// A watch that has ended must be resumed from the last version: the first time at once, and later
// with backoff.
func TestAWatchThatEndsIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.serve = wellThen(func(n int, w io.Writer, ended <-chan struct{}) int {
			if n == 0 {
				time.Sleep(time.Minute)
				return 0
			}
			return -1
		})
		_, stop := listen(t, s, query{})
		time.Sleep(time.Hour)
		stop()
		kinds, all := s.requests()
		if !strings.HasPrefix(kinds, "all 7 7 7 7 7") {
			t.Errorf("the requests are %s, want all and then version 7", kinds)
		}
		for i, least := range []time.Duration{time.Minute, 800 * time.Millisecond, 1280 * time.Millisecond, 2 * time.Second} {
			after := all[i+1].at.Sub(all[i].at)
			if after < least || after > 2*least || i == 0 && after != least {
				t.Errorf("request %d came %v after the previous one, want %v or a little more", i+1, after, least)
			}
		}
		if n := len(all); n > 60 || n < 25 {
			t.Errorf("%d requests in an hour without a server, want one in two minutes", n)
		}
	})
}

// While the server is down, the known endpoints must stay in use. The source must report that they
// have not been confirmed since the last bookmark.
func TestServerDownForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := &scripted{}, time.Now()
		s.serve = wellThen(func(n int, w io.Writer, ended <-chan struct{}) int {
			switch {
			case n == 0:
				time.Sleep(50 * time.Second)
				send(w, bookmark("9", false))
				time.Sleep(10 * time.Second)
				return 0
			case time.Since(began) < time.Hour:
				return -1
			}
			send(w, bookmark("10", false))
			return hold(ended)
		})
		l, stop := listen(t, s, query{})
		time.Sleep(55 * time.Second)
		if got := l.said(); got != "0s update 0/10.0.0.1:80=healthy\n50s confirm" {
			t.Errorf("at first the receiver got %q", got)
		}
		time.Sleep(10 * time.Second)
		if got := l.said(); !strings.HasPrefix(got, "1m0s doubt since 50s: connection refused") || strings.Contains(got, "fail") || strings.Contains(got, "update") {
			t.Errorf("when the server went down the receiver got %q", got)
		}
		time.Sleep(time.Hour + 2*time.Minute) // the longest backoff is 144 s, and the first watch with a bookmark begins after it
		got := l.said()
		if stop(); !strings.HasSuffix(got, "confirm") || strings.Contains(got, "update") || strings.Contains(got, "fail") {
			t.Errorf("when the server was back the receiver got %q, want a confirmation", got)
		}
	})
}

// A server rejects initial events with 400 or 422. All later requests to this server must be LIST
// and then WATCH, also for other Services.
func TestRefusalIsRememberedForTheServer(t *testing.T) {
	for _, code := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity} {
		synctest.Test(t, func(t *testing.T) {
			old := func() *scripted {
				s := &scripted{}
				s.serve = func(n int, q url.Values, w io.Writer, ended <-chan struct{}) int {
					switch {
					case q.Has("sendInitialEvents"):
						return code
					case !q.Has("watch"):
						send(w, `{"kind":"EndpointSliceList","metadata":{"resourceVersion":"5"},"items":null}`)
						return 0
					}
					send(w, "")
					return hold(ended)
				}
				return s
			}
			s, other := old(), old()
			_, stop := listen(t, s, query{})
			synctest.Wait()
			_, stopSecond := listen(t, s, query{services: "api"})
			_, stopOther := listen(t, other, query{})
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

// A server does not end a watch after timeoutSeconds. The client must cancel it 30 s later.
func TestAWatchThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.serve = wellThen(func(n int, w io.Writer, ended <-chan struct{}) int { send(w, ""); return hold(ended) })
		l, stop := listen(t, s, query{})
		time.Sleep(11 * time.Minute)
		stop()
		kinds, all := s.requests()
		var seconds int
		_, _ = fmt.Sscan(all[0].Get("timeoutSeconds"), &seconds)
		if want := time.Duration(seconds)*time.Second + 30*time.Second; all[1].at.Sub(all[0].at) != want || !strings.HasPrefix(kinds, "all 7") {
			t.Errorf("the requests are %s, the second after %v, want %v", kinds, all[1].at.Sub(all[0].at), want)
		}
		if got := l.said(); !strings.Contains(got, "doubt since 0s: the API server has been silent for too long") {
			t.Errorf("the receiver got %q, want a doubt", got)
		}
	})
}

// The server returns 403. The error must name the missing verbs, the resource, the namespace and
// the account, and a command that prints a Role.
func TestForbiddenNamesWhatIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{serve: func(_ int, _ url.Values, w io.Writer, _ <-chan struct{}) int { return http.StatusForbidden }}
		rt := statusTransport{s, `{"kind":"Status","code":403,"message":"endpointslices.discovery.k8s.io is forbidden: User \"system:serviceaccount:shop:web\" cannot watch resource \"endpointslices\""}`}
		l, stop := listen(t, rt, query{})
		time.Sleep(time.Second / 2)
		got := l.said()
		stop()
		for _, part := range []string{"list and watch", "endpointslices.discovery.k8s.io", "namespace shop", "system:serviceaccount:shop:web", "understudy explain --rbac"} {
			if !strings.Contains(got, part) {
				t.Errorf("the receiver got %q, want %q in it", got, part)
			}
		}
	})
}

type statusTransport struct {
	*scripted
	body string
}

func (s statusTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.scripted.RoundTrip(r)
	if err == nil && response.StatusCode != http.StatusOK {
		response.Body = io.NopCloser(strings.NewReader(s.body))
	}
	return response, err
}

func TestUnknownEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.serve = wellThen(func(n int, w io.Writer, ended <-chan struct{}) int {
			time.Sleep(time.Second)
			for range 1000 {
				send(w, `{"type":"RENAMED","object":{"metadata":{"name":"a","resourceVersion":"1"}}}`+"\n")
			}
			send(w, at("ADDED", "b", "10.0.0.2"))
			return hold(ended)
		})
		l, stop := listen(t, s, query{})
		time.Sleep(2 * time.Second)
		if got, notes := flat(l.answer()), l.answer().Notes; got != "0/10.0.0.1:80=healthy 0/10.0.0.2:80=healthy" || len(notes) != 1 || !strings.Contains(notes[0], `the unknown type "RENAMED" has no effect`) {
			t.Errorf("the answer is %s, with the notes %q", got, notes)
		}
		stop()
	})
}

// A burst of events must become one update, even if its events arrive in pieces while the removal
// of a slice is due.
func TestABurstIsOneUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.serve = wellThen(func(n int, w io.Writer, ended <-chan struct{}) int {
			time.Sleep(time.Second)
			text := at("ADDED", "b", "10.0.0.2") + at("MODIFIED", "a", "10.0.0.3") + at("ADDED", "c", "10.0.0.4")
			for _, part := range []string{text[:100], text[100:333], text[333:]} {
				send(w, part)
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Second)
			send(w, at("DELETED", "c", ""))
			for i := range 50 {
				send(w, at("MODIFIED", "b", fmt.Sprint("10.0.1.", i)))
				time.Sleep(40 * time.Millisecond)
			}
			return hold(ended)
		})
		l, stop := listen(t, s, query{})
		time.Sleep(1500 * time.Millisecond)
		if got, want := l.said(), "0s update 0/10.0.0.1:80=healthy\n1.06s update 0/10.0.0.2:80=healthy 0/10.0.0.3:80=healthy 0/10.0.0.4:80=healthy"; got != want {
			t.Errorf("the receiver got %q, want %q", got, want)
		}
		time.Sleep(1500 * time.Millisecond)
		if n := strings.Count(l.said(), "update"); n < 10 {
			t.Errorf("%d updates during continuous changes, want one every 50 ms to 80 ms", n)
		}
		stop()
	})
}

// A redirect must not be followed, because the token would be sent to another server.
func TestEndlessRedirects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{serve: func(int, url.Values, io.Writer, <-chan struct{}) int { return http.StatusFound }}
		l, stop := listen(t, s, query{})
		time.Sleep(10 * time.Second)
		if _, all := s.requests(); len(all) > 7 || !strings.Contains(l.said(), "302 Found") {
			t.Errorf("%d requests in 10 s", len(all))
		}
		stop()
	})
}
