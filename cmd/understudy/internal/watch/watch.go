// Package watch shows which priority a channel uses, and why. You can watch a channel that we open
// to a target, or the channels of a running program, through its debug page.
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

// ErrUnavailable is returned by Run if calls couldn't be sent when the watch ended, or if they all
// failed.
var ErrUnavailable = errors.New("no calls are answered")

// Failure is an error that isn't about the arguments: we couldn't write the result, or couldn't
// reach the page.
type Failure struct{ error }

func (f Failure) Unwrap() error { return f.error }

type Options struct {
	// Target is a gRPC target, or the URL of a debug page.
	Target string
	Dial   Dial
	// Rate is how many times a second we call grpc.health.v1.Health/Check. If it's 0, we don't make
	// any calls.
	Rate    float64
	Service string        // service name for these calls
	Timeout time.Duration // timeout of each of these calls
	// For is how long to watch. If it's 0, we watch until the context ends.
	For time.Duration
	// Output is "json" or "lines". With anything else, we redraw the text in place if Out is a
	// terminal, and print lines if it isn't.
	Output string
	Out    io.Writer
}

type watch struct {
	follower
	fetch    func(context.Context) (*page.Page, error)
	interval time.Duration // time between two fetches
	report   reporter
}

// Run watches a target or a debug page until ctx ends. It returns an error if calls couldn't be
// sent at that point.
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
	// If it isn't the URL of a debug page, we give up. If the page just can't be reached, we try
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
