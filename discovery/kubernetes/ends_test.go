package kubernetes

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func closeAfter(w io.Writer, after time.Duration, done <-chan struct{}) int {
	select {
	case <-done:
	case <-time.After(after):
	}
	_ = w.(*firstWrite).to.(*io.PipeWriter).CloseWithError(io.ErrUnexpectedEOF)
	return 0
}

// A load balancer closes each watch of an unchanged Service, because the connection seems idle. The
// source must nevertheless watch the Service almost all the time.
func TestUnchangedServiceBehindLoadBalancer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = func(_ int, q url.Values, w io.Writer, done <-chan struct{}) int {
			if writeAll(w, ""); q.Get("resourceVersion") == "" {
				writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), bookmark("7", true))
			}
			return closeAfter(w, 50*time.Second, done)
		}
		_, stop := startSource(t, s, query{})
		time.Sleep(time.Hour)
		_, all := s.requests()
		for i := range all[1:] {
			if gap := all[i+1].at.Sub(all[i].at) - 50*time.Second; gap > 2*time.Second {
				t.Errorf("after watch %d there is no watch for %v", i, gap)
			}
		}
		stop()
	})
}

// A server without support for initial events returns a list with an invalid version. The source
// must pause between its requests.
func TestInvalidListVersionBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{}
		s.serve = func(n int, q url.Values, w io.Writer, done <-chan struct{}) int {
			switch {
			case n > 1000:
				return waitUntilDone(done)
			case q.Has("sendInitialEvents"):
				return http.StatusBadRequest
			}
			writeAll(w, `{"metadata":{"resourceVersion":"`+strings.Repeat("9", 300)+`"},"items":[]}`)
			return 0
		}
		l, stop := startSource(t, s, query{})
		time.Sleep(10 * time.Second)
		if kinds, all := s.requests(); len(all) > 20 || !strings.HasPrefix(kinds, "all list all") {
			t.Errorf("%d requests in 10 s: %.100s", len(all), kinds)
		}
		if got := l.takeReports(); !strings.Contains(got, "400 Bad Request") {
			t.Errorf("the receiver got %q, want the rejection", got)
		}
		stop()
	})
}

// If the server rejects the token in each watch, the pauses between requests must grow.
func TestRejectedTokenBackoff(t *testing.T) {
	p := newPod(t)
	requestTimes := make(chan time.Time, 10_000)
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "endpointslices") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		requestTimes <- time.Now()
		writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1"), bookmark("7", true), `{"type":"ERROR","object":{"code":401}}`+"\n")
	})
	p.start(t)
	start := await(t, requestTimes, "first request")
	for range 3 {
		await(t, requestTimes, "request")
	}
	if elapsed := time.Since(start); elapsed < time.Second {
		t.Errorf("four requests took %v, want at least a second", elapsed)
	}
}
