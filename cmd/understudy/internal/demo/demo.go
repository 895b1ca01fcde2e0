// Package demo shows a channel at work. Backends die and come back, weights change, a priority
// fills up, and there are calls the whole time. Everything runs in this process, on loopback.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/serve"
)

var ErrUnexpectedResult = errors.New("a phase did not go as expected")

const (
	SourceFile = "file"
	SourceEDS  = "eds" // a management server that serves the file
)

type Options struct {
	// Source is SourceFile or SourceEDS.
	Source string
	JSON   bool
	// Out gets the report, Progress everything else.
	Out, Progress io.Writer
}

// The demo has three localities in two priorities.
type cluster struct {
	file     string
	backends []*backend
}

func newCluster(file string) *cluster {
	first, second := time.NewTicker(10*time.Millisecond), time.NewTicker(10*time.Millisecond)
	return &cluster{file: file, backends: []*backend{
		{locality: "us-east/a", priority: 0, localityWeight: 3, weight: 2, limit: first},
		{locality: "us-east/a", priority: 0, localityWeight: 3, weight: 1, limit: first},
		{locality: "us-east/b", priority: 0, localityWeight: 1, weight: 1, limit: first},
		{locality: "eu-west/a", priority: 1, localityWeight: 1, weight: 3, limit: second},
		{locality: "eu-west/a", priority: 1, localityWeight: 1, weight: 1, limit: second},
	}}
}

func (b *backend) names() []string {
	return []string{fmt.Sprintf("p%d", b.priority), b.locality, b.address}
}

func (c *cluster) set(name string, m mode) error {
	// name can be that of a priority, a locality or a backend, or "" for all of them.
	var problems error
	for _, b := range c.backends {
		if name == "" || slices.Contains(b.names(), name) {
			problems = errors.Join(problems, b.set(m))
		}
	}
	return problems
}

func (c *cluster) write() error {
	temporary := c.file + ".new"
	return errors.Join(os.WriteFile(temporary, []byte(c.yaml()), 0o600), os.Rename(temporary, c.file))
}

func (c *cluster) yaml() string {
	var out strings.Builder
	out.WriteString("cluster_name: demo\nendpoints:\n")
	last := ""
	for _, b := range c.backends {
		if b.locality != last {
			last = b.locality
			region, zone, _ := strings.Cut(b.locality, "/")
			fmt.Fprintf(&out, "- locality: {region: %s, zone: %s}\n  priority: %d\n  load_balancing_weight: %d\n  lb_endpoints:\n",
				region, zone, b.priority, b.localityWeight)
		}
		host, port, _ := strings.Cut(b.address, ":")
		fmt.Fprintf(&out, "  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n    load_balancing_weight: %d\n",
			host, port, b.weight)
	}
	return out.String()
}

// Run runs the phases, which takes about half a minute. It returns ErrUnexpectedResult if there
// were problems in any of them.
func Run(ctx context.Context, opts Options) error {
	return withCalls(ctx, opts, nil, func(c *cluster, calls *traffic) error {
		report := Report{OK: true}
		rows := opts.Out
		if opts.JSON {
			rows = opts.Progress
		}
		fmt.Fprintln(rows, header)
		for _, p := range phases {
			result, err := p.run(ctx, c, calls)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			fmt.Fprintln(rows, result.row())
			report.OK = report.OK && len(result.Problems) == 0
			report.Phases = append(report.Phases, result)
		}
		err := report.print(opts)
		if err == nil && !report.OK {
			err = ErrUnexpectedResult
		}
		return err
	})
}

func withCalls(ctx context.Context, opts Options, log *slog.Logger, run func(*cluster, *traffic) error) error {
	// If there's a log, we don't keep the results of calls.
	dir, err := os.MkdirTemp("", "understudy-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover temporary directory is harmless
	c := newCluster(filepath.Join(dir, "endpoints.yaml"))
	defer c.set("", killed) //nolint:errcheck // killing can't fail
	if err := errors.Join(c.set("", serving), c.write()); err != nil {
		return err
	}
	target := (&url.URL{Scheme: "file", Path: c.file}).String()
	if opts.Source == SourceEDS {
		server, err := serve.Start(ctx, serve.Options{Paths: []string{c.file}, Listen: "127.0.0.1:0"})
		if err != nil {
			return err
		}
		defer server.Stop()
		target = fmt.Sprintf("eds://%s/demo", server.Addr())
	}
	cc, err := dial(target, log)
	if err != nil {
		return err
	}
	defer cc.Close() //nolint:errcheck // nothing depends on it
	calls, end := startTraffic(cc, log == nil)
	defer end()
	return run(c, calls)
}

func dial(target string, log *slog.Logger) (*grpc.ClientConn, error) {
	// Reconnect to a restored backend within a second. We also let calls return sooner than would
	// be wise for servers with cold caches.
	options := understudy.Recommended()
	options.RetryMethods = []string{whoAmI}
	options.Ramp = time.Second
	options.Keepalive.Timeout = 2 * time.Second
	options.Logger = log
	return understudy.NewClient(target, options,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // it's all on loopback
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	)
}
