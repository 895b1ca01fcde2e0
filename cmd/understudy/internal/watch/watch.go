// Package watch shows which priority a channel uses, and why. It watches either a channel that it
// opens to a target, or the channels of a running program, whose debug page it fetches.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/debug"
)

// ErrUnavailable is returned by Run if calls could not be sent when the watch ended.
var ErrUnavailable = errors.New("calls cannot be sent")

// Failure is an error that is not caused by the arguments: the result could not be written, or the
// page could not be reached.
type Failure struct{ error }

func (f Failure) Unwrap() error { return f.error }

// Options configure a watch.
type Options struct {
	// Target is a gRPC target, or the URL of a debug page.
	Target string
	Dial   Dial
	// Rate is how often the watch calls grpc.health.v1.Health/Check, in calls per second. If it is 0,
	// the watch makes no calls.
	Rate    float64
	Service string        // service name in the requests of these calls
	Timeout time.Duration // timeout of each of these calls
	// For is the duration of the watch. If it is 0, the watch ends with the context.
	For time.Duration
	// JSON prints each event as a JSON object, and Lines prints it as a line of text. If neither is
	// set, a terminal shows the live view.
	JSON, Lines bool
	In          io.Reader
	Out         io.Writer
}

type watch struct {
	follower follower
	fetcher  pageFetcher
	reporter reporter
}

// Run watches a target or a debug page until ctx ends or the user quits. It returns an error if
// calls could not be sent at that time.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.For > 0 {
		timer := time.AfterFunc(o.For, cancel)
		defer timer.Stop()
	}
	w := &watch{follower: follower{view: &view{now: time.Now()}}}
	stop, err := w.start(ctx, o)
	if err != nil {
		return err
	}
	defer stop()
	if err := w.openReporter(o, cancel); err != nil {
		return Failure{err}
	}
	err = w.run(ctx)
	if s, ok := w.reporter.(*screen); ok {
		s.close()
	}
	if err == nil {
		err = w.follower.view.checkHealth()
	}
	return err
}

// start opens the channel to the target, or checks the remote page. The caller must call stop.
func (w *watch) start(ctx context.Context, o Options) (stop func(), err error) {
	if isPage(o.Target) {
		return func() {}, w.startPage(ctx, o)
	}
	w.fetcher = localPages{debug.Handler()}
	cc, err := o.Dial.dial(o.Target)
	if err != nil {
		return nil, err
	}
	cc.Connect()
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	if o.Rate > 0 {
		w.follower.view.calls = &prober{rate: o.Rate}
		calls.Go(func() { w.follower.view.calls.run(ctx, cc, o.Service, o.Timeout) })
	}
	return func() {
		cancel()
		calls.Wait()
		_ = cc.Close()
	}, nil
}

// startPage fetches the page once. It returns an error if the URL is not that of a debug page. If
// the page is unreachable, the watch tries again later.
func (w *watch) startPage(ctx context.Context, o Options) error {
	log.SetOutput(io.Discard) // net/http logs invalid responses, which would garble the screen
	transport, err := o.Dial.TLS.transport()
	if err != nil {
		return err
	}
	page, err := newRemote(o.Target, transport)
	if err != nil {
		return err
	}
	w.fetcher, w.follower.view.pageURL = page, page.redactedURL
	if _, err := page.fetch(ctx); err != nil {
		if wrong, ok := errors.AsType[invalidPageError](err); ok {
			return fmt.Errorf("%s: %w", page.redactedURL, wrong)
		}
	}
	return nil
}

func (w *watch) openReporter(o Options, quit func()) (err error) {
	out := table.Terminal(o.Out)
	switch {
	case o.JSON:
		w.reporter = jsonReporter{o.Out}
	case out == nil || o.Lines:
		w.reporter = lineReporter{o.Out}
	default:
		w.reporter, err = openScreen(out, o.In, quit)
	}
	return err
}

// redrawInterval is the interval at which the terminal is redrawn even if nothing has happened,
// because its size may have changed.
const redrawInterval = 250 * time.Millisecond

func (w *watch) run(ctx context.Context) error {
	ticker := time.NewTicker(redrawInterval)
	defer ticker.Stop()
	v := w.follower.view
	var next time.Time
	var pause time.Duration
	for {
		var events []Event
		if began := time.Now(); !began.Before(next) {
			page, err := w.fetcher.fetch(ctx)
			if ctx.Err() != nil {
				if err != nil && v.fetchErr == nil && time.Since(began) >= pause {
					v.fetchErr, v.fetchErrSince = errors.New("no answer before the watch ended"), began
				}
				return w.reporter.report(v, w.follower.finalEvents(time.Now()))
			}
			now := time.Now()
			pause = w.fetcher.pause(now.Sub(began))
			next = now.Add(pause)
			events = w.follower.observe(now, page, err)
		}
		v.now = time.Now()
		if err := w.reporter.report(v, events); err != nil {
			return Failure{fmt.Errorf("write the result: %w", err)}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return w.reporter.report(v, w.follower.finalEvents(time.Now()))
		}
	}
}
