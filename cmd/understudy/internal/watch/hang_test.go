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

	"github.com/understudy-lb/understudy/internal/debugpage"
)

func TestAPageThatHangsFromTheBeginning(t *testing.T) {
	asked, end := make(chan bool, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- true
		<-end
	}))
	defer server.Close()
	defer close(end)
	w := begin(t, Options{Target: server.URL, Lines: true})
	<-asked
	if err := w.end(); !errors.As(err, new(Failure)) {
		t.Errorf("the watch of a page that hangs ends with %v, want a Failure", err)
	}
}

type hanging struct {
	remote
	answers int
}

func (h *hanging) fetch(ctx context.Context) (*debugpage.Page, error) {
	if h.answers--; h.answers >= 0 {
		return &debugpage.Page{}, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// The watch requests the page every second. When it ends, the page counts as lost only if a request
// has been pending for more than a second.
func TestAPageThatHangsAtTheEnd(t *testing.T) {
	for watched, lost := range map[time.Duration]bool{
		1500 * time.Millisecond: false, // two answers have arrived
		2900 * time.Millisecond: false, // the third request has been pending for less than a second
		4 * time.Second:         true,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), watched)
			defer cancel()
			w := &watch{follower: follower{view: &view{}}, pages: &hanging{answers: 2}, reporter: lines{io.Discard}}
			if err := w.run(ctx); err != nil {
				t.Fatal(err)
			}
			if err := w.follower.view.unwell(); errors.As(err, new(Failure)) != lost {
				t.Errorf("a watch of %v ended with %v, want a Failure: %v", watched, err, lost)
			}
		})
	}
}
