package watch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/page"
)

func TestPageHangsAtStart(t *testing.T) {
	requested, release := make(chan bool, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		requested <- true
		<-release
	}))
	defer server.Close()
	defer close(release)
	w := startWatch(t, Options{Target: server.URL, Output: "lines"})
	<-requested
	if err := w.end(); !errors.As(err, new(Failure)) {
		t.Errorf("the watch of a page that hangs ends with %v, want a Failure", err)
	}
}

// The watch requests the page every second. When the watch ends, the page counts as unreachable
// only if a request has been pending for more than a second.
func TestPageHangsAtEnd(t *testing.T) {
	for watched, wantFailure := range map[time.Duration]bool{
		1500 * time.Millisecond: false, // two responses have arrived
		2900 * time.Millisecond: false, // the third request has been pending for less than a second
		4 * time.Second:         true,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), watched)
			defer cancel()
			responses := 2
			w := &watch{interval: time.Second, report: lineReporter(io.Discard), fetch: func(ctx context.Context) (*page.Page, error) {
				if responses--; responses >= 0 {
					return &page.Page{}, nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			if err := w.run(ctx); err != nil {
				t.Fatal(err)
			}
			if err := w.checkHealth(); errors.As(err, new(Failure)) != wantFailure {
				t.Errorf("a watch of %v ended with %v, want a Failure: %v", watched, err, wantFailure)
			}
		})
	}
}
