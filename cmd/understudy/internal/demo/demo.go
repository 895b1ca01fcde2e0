// Package demo demonstrates a channel: backends die and come back, weights change, and calls
// continue.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/serve"
)

// ErrUnexpectedResult is returned by Run if a phase did not go as expected.
var ErrUnexpectedResult = errors.New("a phase did not go as expected")

// The values of Options.Source.
const (
	SourceFile = "file"
	SourceEDS  = "eds" // a management server that serves the file
)

// Options configure the demo.
type Options struct {
	// Source is SourceFile or SourceEDS.
	Source string
	JSON   bool
	// Out receives the report. Progress receives a line for each phase.
	Out, Progress io.Writer
}

// Run runs the demo, which takes about a minute. It stops all processes that it has started,
// even when ctx ends.
func Run(ctx context.Context, opts Options) error {
	started := time.Now()
	return withCluster(ctx, opts, func(*understudy.Options) {}, func(c *cluster, cc *grpc.ClientConn) error {
		calls := startTraffic(cc)
		defer calls.close()
		report, err := runPhases(ctx, c, calls, opts.Progress)
		if err != nil {
			return err
		}
		fmt.Fprintf(opts.Progress, "done after %.0f s\n", time.Since(started).Seconds())
		if opts.JSON {
			err = report.printJSON(opts.Out)
		} else {
			err = report.printTable(opts.Out)
		}
		if err == nil && !report.OK {
			err = ErrUnexpectedResult
		}
		return err
	})
}

// withCluster starts the backends, the source of their addresses, and a channel. It calls run, and
// then stops everything that it has started.
func withCluster(ctx context.Context, opts Options, configure func(*understudy.Options), run func(*cluster, *grpc.ClientConn) error) error {
	dir, err := os.MkdirTemp("", "understudy-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover temporary directory is harmless
	c, err := startCluster(dir)
	if err != nil {
		return err
	}
	defer c.stop()
	fmt.Fprintf(opts.Progress, "%d backends are up, in three localities and two priorities\n", len(c.slots))
	target, stop, err := startSource(ctx, opts.Source, c.file)
	if err != nil {
		return err
	}
	defer stop()
	cc, err := dial(target, configure)
	if err != nil {
		return err
	}
	defer cc.Close() //nolint:errcheck // no result depends on closing the channel
	return run(c, cc)
}

func startSource(ctx context.Context, source, file string) (target string, stop func(), err error) {
	if source != SourceEDS {
		return (&url.URL{Scheme: "file", Path: file}).String(), func() {}, nil
	}
	server, err := serve.Start(ctx, serve.Options{Paths: []string{file}, Listen: "127.0.0.1:0"})
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("eds://%s/%s", server.Addr(), clusterName), server.Stop, nil
}

// dial creates the demo's channel. Its options are those of Recommended, but with shorter delays.
func dial(target string, configure func(*understudy.Options)) (*grpc.ClientConn, error) {
	options := understudy.Recommended()
	options.RetryMethods = []string{whoAmI}
	// Calls return to a higher priority soon, and the channel reconnects to a restored backend within
	// a second.
	options.Ramp = time.Second
	options.Keepalive.Timeout = 2 * time.Second
	configure(&options)
	return understudy.NewClient(target, options,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // all connections are on loopback
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	)
}

func runPhases(ctx context.Context, c *cluster, calls *traffic, progress io.Writer) (*Report, error) {
	report := &Report{OK: true}
	for i, p := range phases {
		fmt.Fprintf(progress, "%d/%d %-17s ", i+1, len(phases), p.name)
		result, err := p.run(ctx, c, calls)
		if err != nil {
			fmt.Fprintln(progress)
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(progress, "%5d calls, %d failed, priority %d in use\n", result.Calls, result.Failed, result.Priority)
		if len(result.Problems) > 0 {
			report.OK = false
		}
		report.Phases = append(report.Phases, result)
	}
	return report, nil
}
