package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy"
)

// holdPause is the pause between calls with --hold, and holdDeadline is the deadline of each call.
// Without the deadline, a call to a backend that hangs would never fail.
const (
	holdPause    = 40 * time.Millisecond
	holdDeadline = time.Second
)

// Hold keeps backends, calls and the page running until ctx ends. It stops all processes that it
// has started.
func Hold(ctx context.Context, opts Options) error {
	withLogger := func(o *understudy.Options) { o.Logger = slog.New(slog.NewTextHandler(opts.Progress, nil)) }
	return withCluster(ctx, opts, withLogger, func(c *cluster, cc *grpc.ClientConn) error {
		defer makeCalls(ctx, cc)()
		ctl := &controller{cluster: c}
		defer ctl.end()
		return servePage(ctx, opts, newPage(ctl))
	})
}

// makeCalls makes calls until stop is called. It discards the results, because the page counts
// them.
func makeCalls(ctx context.Context, cc grpc.ClientConnInterface) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	for range senders {
		done.Go(func() {
			ticker := time.NewTicker(holdPause)
			defer ticker.Stop()
			for ctx.Err() == nil {
				callCtx, cancel := context.WithTimeout(ctx, holdDeadline)
				_, _ = callWhoAmI(callCtx, cc)
				cancel()
				select {
				case <-ctx.Done():
				case <-ticker.C:
				}
			}
		})
	}
	return func() {
		cancel()
		done.Wait()
	}
}

func servePage(ctx context.Context, opts Options, page http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           page,
		ReadHeaderTimeout: 10 * time.Second,
	}
	stopped := context.AfterFunc(ctx, func() { server.Close() }) //nolint:errcheck // Serve returns the error
	defer stopped()
	fmt.Fprintf(opts.Out, "page: http://%s/\n", listener.Addr())
	fmt.Fprintln(opts.Progress, "calls continue until you press Ctrl-C")
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
