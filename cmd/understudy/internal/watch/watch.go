// Package watch shows which priority a channel uses, and why. It watches either a channel that it
// opens to a target, or the channels of a running program, whose debug page it fetches.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"sync"
	"time"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/page"
)

// ErrUnavailable is returned by Run if calls could not be sent when the watch ended, or all failed.
var ErrUnavailable = errors.New("no calls are answered")

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
	// Output is "json", "lines", or anything else for a text that is redrawn if Out is a terminal,
	// and lines otherwise.
	Output string
	Out    io.Writer
}

type watch struct {
	follower
	fetch    func(context.Context) (*page.Page, error)
	interval time.Duration // between two fetches
	report   reporter
}

// Run watches a target or a debug page until ctx ends. It returns an error if calls could not be
// sent at that time.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.For, math.MaxInt64))
	defer cancel()
	w := watch{fetch: localPage, interval: 250 * time.Millisecond}
	if isPage(o.Target) {
		if err := w.startPage(ctx, o); err != nil {
			return err
		}
	} else {
		cc, err := o.Dial.dial(o.Target)
		if err != nil {
			return err
		}
		defer cc.Close() //nolint:errcheck // the watch has ended
		cc.Connect()
		if o.Rate > 0 {
			w.calls = &prober{rate: o.Rate}
			var calls sync.WaitGroup
			calls.Go(func() { w.calls.run(ctx, cc, o.Service, o.Timeout) })
			defer calls.Wait()
			defer cancel()
		}
	}
	restore := func() {}
	switch terminal := table.Terminal(o.Out); {
	case o.Output == "json":
		w.report = jsonReporter(o.Out)
	case o.Output == "lines" || terminal == nil:
		w.report = lineReporter(o.Out)
	default:
		w.report, restore = openScreen(terminal)
	}
	err := w.run(ctx)
	restore()
	if err != nil {
		return Failure{fmt.Errorf("write the result: %w", err)}
	}
	return w.checkHealth()
}

func (w *watch) startPage(ctx context.Context, o Options) (err error) {
	// If the URL is not that of a debug page, we give up. If the page is only unreachable, we try
	// again later.
	log.SetOutput(io.Discard) // net/http logs invalid responses, which would garble the screen
	if w.fetch, w.url, err = openPage(o.Target, o.Dial.TLS); err != nil {
		return err
	}
	w.interval = time.Second
	if _, err := w.fetch(ctx); errors.As(err, new(invalidPageError)) {
		return fmt.Errorf("%s: %w", w.url, err)
	}
	return nil
}

func (w *watch) run(ctx context.Context) error {
	for pause := time.Duration(0); ; {
		var events []Event
		began := time.Now()
		page, err := w.fetch(ctx)
		took := time.Since(began)
		switch {
		case ctx.Err() == nil:
			events = w.observe(time.Now(), page, err)
		case err != nil && w.err == nil && took >= pause:
			w.err, w.errSince = errors.New("no answer before the watch ended"), began
		}
		pause = max(w.interval, 10*took)
		if err := w.report(&w.follower, events); err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return w.report(&w.follower, w.observeCalls(time.Now(), true))
		}
	}
}
