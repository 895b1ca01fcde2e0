package serve

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/policy/weightedroundrobin"
)

const description = `Serves the endpoints in files with Envoy's v3 aggregated discovery service (ADS), to targets
eds://127.0.0.1:18000/NAME, and xds:///NAME with a bootstrap that names this server. A file
holds one cluster, named by its cluster_name or else by the name of the file, or a list of
clusters. --from resolves a target as a channel does, and serves its endpoints as a cluster.

Edits are sent to clients at once. If an edit is invalid, the log reports it with
file:line:column, and the last good content is still served; with --cache, even after a
restart. If a file disappears, its cluster is removed after --removal-delay. On SIGHUP all
files are read again.`

// Command returns the command "serve", which runs until its context ends.
func Command() *cobra.Command {
	var o Options
	var output, level string
	command := &cobra.Command{
		Use:   "serve [--from NAME=TARGET] DIR|FILE...",
		Short: "Serve endpoints files to a fleet, as an xDS management server",
		Long:  description,
		Example: `  understudy serve endpoints/
  understudy serve --from checkout=kubernetes:///checkout.shop:grpc
  understudy serve payments.yaml --listen :18000 --tls-cert s.pem --tls-key s.key --tls-client-ca ca.pem`,
		Args: cobra.ArbitraryArgs, // if there are none, Start's error is more helpful
	}
	flags := command.Flags()
	o.addFlags(flags)
	flags.StringVar(&level, "log-level", "info", "minimum `level` of the log: debug (includes what each client requests and accepts), info, warn or error")
	flags.StringVarP(&output, "output", "o", "text", "format of the log: `text` for people, json for machines")
	command.RunE = func(cmd *cobra.Command, args []string) error {
		var log *slog.Logger
		report := func(dropped uint64) {
			log.Error("log lines were dropped, because nobody read them", "lines", dropped)
		}
		logLines, errorLines := newQueue(cmd.OutOrStdout(), report), newQueue(cmd.ErrOrStderr(), report)
		defer logLines.close()
		defer errorLines.close()
		var err error
		if log, err = newLog(output, level, logLines); err != nil {
			return err
		}
		signal.Ignore(syscall.SIGPIPE) // whoever reads the log may exit before we do
		setGRPCLogger(errorLines)
		o.Paths, o.Log = args, log
		o.droppedLines = func() float64 { return float64(logLines.dropped.Load() + errorLines.dropped.Load()) }
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		defer signal.Stop(hangup)
		server, err := Start(cmd.Context(), o)
		if err != nil {
			return err
		}
		for {
			select {
			case <-hangup:
				server.Reload()
			case <-server.done:
				return server.err
			}
		}
	}
	return command
}

func (o *Options) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.From, "from", nil, "`NAME=TARGET`: serve the endpoints of the target as cluster NAME; without NAME=, the cluster has the name of the target's authority; may be repeated")
	flags.StringVar(&o.Listen, "listen", DefaultListen, "`address` to listen on, host:port; addresses beyond loopback need TLS")
	flags.StringVar(&o.TLS.Certificate, "tls-cert", "", "PEM `file` with the server's certificate")
	flags.StringVar(&o.TLS.Key, "tls-key", "", "PEM `file` with the key of the certificate")
	flags.StringVar(&o.TLS.ClientCA, "tls-client-ca", "", "PEM `file` with the root certificates for client certificates, which are then required (mTLS)")
	flags.DurationVar(&o.RemovalDelay, "removal-delay", DefaultRemovalDelay, "`duration` for which a cluster is still served after its file has disappeared")
	flags.DurationVar(&o.MaxConnectionAge, "max-connection-age", DefaultMaxConnectionAge, "maximum `duration` of a client's connection, ± 10 %, so that a fleet spreads over replicas; 0 for no limit")
	flags.StringVar(&o.Cache, "cache", "", "`directory` that keeps the last good content of each cluster across restarts")
	flags.StringVar(&o.Policy, "policy", weightedroundrobin.Name, "`policy` that xds: clients should use if they have it, or "+RoundRobin)
	flags.BoolVar(&o.Insecure, "insecure", false, "serve without TLS beyond loopback")
	flags.StringVar(&o.Metrics, "metrics", "", "`address` for metrics in Prometheus' text format: host:port, or a port on loopback")
	o.Kubeconfig.Flags(flags)
	flags.UintVar(&o.MaxConnections, "max-connections", DefaultMaxConnections, "maximum `number` of connections; others are closed")
	flags.UintVar(&o.MaxNames, "max-names", DefaultMaxNames, "maximum `number` of names of each type requested on a stream")
}

func newLog(output, level string, w io.Writer) (*slog.Logger, error) {
	var minLevel slog.Level
	if minLevel.UnmarshalText([]byte(level)) != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: minLevel}
	switch output {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("output %q: want text or json", output)
}

func setGRPCLogger(w io.Writer) {
	// Writing to standard error may block, so we redirect the logs of gRPC and the standard
	// library. The level for gRPC's log still comes from the environment.
	log.SetOutput(w)
	severity, writers := strings.ToLower(os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL")), []io.Writer{io.Discard, io.Discard, io.Discard}
	if i := slices.Index([]string{"info", "warning", "error"}, cmp.Or(severity, "error")); i >= 0 {
		writers[i] = w
	}
	verbosity, _ := strconv.Atoi(os.Getenv("GRPC_GO_LOG_VERBOSITY_LEVEL"))
	grpclog.SetLoggerV2(grpclog.NewLoggerV2WithVerbosity(writers[0], writers[1], writers[2], verbosity))
}

const (
	maxQueuedLines = 1000
	flushTimeout   = time.Second
)

// queue never blocks its writer. If out can't keep up, we drop lines and count them.
type queue struct {
	lines   chan []byte // a nil line ends the queue
	dropped atomic.Uint64
	done    chan struct{}
}

func newQueue(out io.Writer, report func(dropped uint64)) *queue {
	// As soon as we can write again, report gets the number of lines we've dropped so far.
	q := &queue{lines: make(chan []byte, maxQueuedLines), done: make(chan struct{})}
	go func() {
		defer close(q.done)
		var reported uint64
		for line := range q.lines {
			if line == nil {
				return
			}
			if _, err := out.Write(line); err != nil {
				q.dropped.Add(1)
			} else if n := q.dropped.Load(); n > reported {
				reported = n
				report(n)
			}
		}
	}()
	return q
}

func (q *queue) Write(line []byte) (int, error) {
	select {
	case q.lines <- bytes.Clone(line):
	default:
		q.dropped.Add(1)
	}
	return len(line), nil
}

func (q *queue) close() {
	go func() { q.lines <- nil }() // blocks while the queue is full
	select {
	case <-q.done:
	case <-time.After(flushTimeout):
	}
}
