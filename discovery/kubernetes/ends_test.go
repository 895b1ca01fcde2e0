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

func cut(w io.Writer, after time.Duration, ended <-chan struct{}) int {
	select {
	case <-ended:
	case <-time.After(after):
	}
	_ = w.(*firstWrite).to.(*io.PipeWriter).CloseWithError(io.ErrUnexpectedEOF)
	return 0
}

// A server that was restored from a backup accepts a watch from a version that it no longer knows,
// but sends nothing. When such a watch ends, because the connection is cut or by its timeout, the
// source must request all slices again. After an ordinary outage, it must not.
func TestARestoreBehindABalancer(t *testing.T) {
	for _, silent := range []time.Duration{50 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{}
			s.serve = func(n int, q url.Values, w io.Writer, ended <-chan struct{}) int {
				switch {
				case n == 0:
					send(w, at("ADDED", "a", "10.0.0.1"), bookmark("7000", true))
					return cut(w, time.Minute, ended)
				case n < 4:
					return -1
				case q.Get("resourceVersion") == "":
					send(w, at("ADDED", "a", "10.0.0.2"), bookmark("5", true))
					return hold(ended)
				}
				send(w, "")
				return cut(w, silent, ended)
			}
			l, stop := listen(t, s, query{})
			time.Sleep(15 * time.Minute)
			if got := flat(l.answer()); got != "0/10.0.0.2:80=healthy" {
				t.Errorf("silent for %v: the answer is %s", silent, got)
			}
			if kinds, _ := s.requests(); !strings.HasPrefix(kinds, "all 7000 7000 7000 7000 all") {
				t.Errorf("silent for %v: the requests are %s", silent, kinds)
			}
			stop()
		})
	}
}

// A Service does not change, so a load balancer cuts each watch as idle. The Service must
// nevertheless be watched almost all the time.
func TestAQuietServiceBehindABalancer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.serve = func(_ int, q url.Values, w io.Writer, ended <-chan struct{}) int {
			if send(w, ""); q.Get("resourceVersion") == "" {
				send(w, at("ADDED", "a", "10.0.0.1"), bookmark("7", true))
			}
			return cut(w, 50*time.Second, ended)
		}
		_, stop := listen(t, s, query{})
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

// A server that does not support initial events returns a list with an invalid version. The source
// must pause between its requests.
func TestAListWithoutAVersionMakesNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.serve = func(n int, q url.Values, w io.Writer, ended <-chan struct{}) int {
			switch {
			case n > 1000:
				return hold(ended)
			case q.Has("sendInitialEvents"):
				return http.StatusBadRequest
			}
			send(w, `{"metadata":{"resourceVersion":"`+strings.Repeat("9", 300)+`"},"items":[]}`)
			return 0
		}
		l, stop := listen(t, s, query{})
		time.Sleep(10 * time.Second)
		if kinds, all := s.requests(); len(all) > 20 || !strings.HasPrefix(kinds, "all list all") {
			t.Errorf("%d requests in 10 s: %.100s", len(all), kinds)
		}
		if got := l.said(); !strings.Contains(got, "400 Bad Request") {
			t.Errorf("the receiver got %q, want the rejection", got)
		}
		stop()
	})
}

// The server rejects the token in each watch. The pauses between requests must grow.
func TestATokenThatIsRefusedInTheWatchMakesNoLoop(t *testing.T) {
	p := newPod(t)
	asked := make(chan time.Time, 10_000)
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "endpointslices") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		asked <- time.Now()
		send(w, at("ADDED", "a", "10.0.0.1"), bookmark("7", true), `{"type":"ERROR","object":{"code":401}}`+"\n")
	})
	p.start(t)
	began := await(t, asked, "first request")
	for range 3 {
		await(t, asked, "request")
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("four requests took %v, want at least a second", took)
	}
}

// Each watch ends at once with an error. The error must be reported from the second time on.
func TestWatchesThatEndAtOnceAreSaid(t *testing.T) {
	well := at("ADDED", "a", "10.0.0.1") + bookmark("7", true)
	for what, test := range map[string]struct {
		first string
		code  int
		want  string
	}{
		"410 always":          {"", 410, "fail the API server answers 410 Gone"},
		"410 after an answer": {well, 410, "doubt since 0s: the API server answers 410 Gone"},
		"empty answers":       {well, 0, "doubt since 0s: the API server ends each watch at once"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{}
				s.serve = func(n int, _ url.Values, w io.Writer, _ <-chan struct{}) int {
					if n == 0 && test.first != "" {
						send(w, test.first)
						return 0
					}
					return test.code
				}
				l, stop := listen(t, s, query{})
				time.Sleep(time.Minute)
				if got := l.said(); !strings.Contains(got, test.want) {
					t.Errorf("the receiver got %q, want %q", got, test.want)
				}
				stop()
			})
		})
	}
}
