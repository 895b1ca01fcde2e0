package serve

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/understudy-lb/understudy/weightedroundrobin"
)

// Command returns the command "serve", which runs until its context ends.
func Command() *cobra.Command {
	var o Options
	var output, level string
	command := &cobra.Command{
		Use:   "serve [--from NAME=TARGET] DIR|FILE...",
		Short: "Serve endpoints files to a fleet, as an xDS management server",
		Long: `Serves the endpoints in files by Envoy's v3 aggregated discovery service (ADS). Each
file is a cluster, named by its cluster_name or else by the file, or a list of clusters,
aggregates among them. Clients are

  eds://127.0.0.1:18000/NAME   of this project
  xds:///NAME                  of any gRPC, with a bootstrap that names this server

Edits are pushed at once. A broken edit is rejected, with file:line:column, and the
last good one is served on. A file that is broken at the start is reported and left
out; with --cache it is served as it was before. A cluster whose file is gone is
removed after --removal-delay. A directory that cannot be read removes nothing.

--from follows a target as a channel to it would, with all its parameters and parts, and
serves what it leads to: one look at a registry for a whole fleet. It prefers no zone:
localities travel, and each client prefers its own.

SIGHUP has all files looked at, those of TLS, too.`,
		Example: `  understudy serve endpoints/
  understudy serve --from checkout=kubernetes:///checkout.shop:grpc
  understudy serve payments.yaml --listen :18000 --tls-cert s.pem --tls-key s.key --tls-client-ca ca.pem`,
		Args: cobra.ArbitraryArgs, // Start reports missing arguments with advice
	}
	flags := command.Flags()
	o.add(flags)
	flags.StringVar(&level, "log-level", "info", "`level` from which on is logged: debug (with what each client asks for and accepts), info, warn or error")
	flags.StringVarP(&output, "output", "o", "text", "form of the log: `text` for people, json for machines")
	command.RunE = func(cmd *cobra.Command, args []string) error {
		lines, complaints := logQueue(cmd.OutOrStdout(), output, level), complaintQueue(cmd.ErrOrStderr())
		defer lines.close()
		defer complaints.close()
		log, err := newLog(output, level, lines)
		if err != nil {
			return err
		}
		signal.Ignore(syscall.SIGPIPE) // the reader of the log may exit first
		logOfGRPC(complaints)
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(50) // trades CPU for memory when a client requests a lot
		}
		o.Paths, o.Log = args, log
		o.dropped = func() uint64 { return lines.total.Load() + complaints.total.Load() }
		return run(cmd.Context(), o)
	}
	return command
}

// add adds the flags of the options.
func (o *Options) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.From, "from", nil, "`NAME=TARGET` to follow, and to serve what it leads to as a cluster of that name; a target alone is served by its authority")
	flags.StringVar(&o.Listen, "listen", DefaultListen, "`address` to serve, host:port; TLS is needed beyond loopback")
	flags.StringVar(&o.TLS.Certificate, "tls-cert", "", "`file` with the server's certificate, in PEM")
	flags.StringVar(&o.TLS.Key, "tls-key", "", "`file` with the key of the certificate, in PEM")
	flags.StringVar(&o.TLS.ClientCA, "tls-client-ca", "", "`file` with the roots of the certificates that clients must show (mTLS)")
	flags.DurationVar(&o.RemovalDelay, "removal-delay", DefaultRemovalDelay, "`duration` for which a cluster is still served after its file is gone")
	flags.DurationVar(&o.MaxConnectionAge, "max-connection-age", DefaultMaxConnectionAge, "`duration` after which a client connects again, give or take a tenth, so that a fleet spreads over replicas; 0 for no limit")
	flags.StringVar(&o.Cache, "cache", "", "`directory` in which the last good form of each cluster survives a restart")
	flags.BoolVar(&o.Strict, "strict", false, "refuse to start where a file is not good, or there is none, or a target leads to nothing")
	flags.StringVar(&o.Policy, "policy", weightedroundrobin.Name, "`policy` that xds: clients are told to use, if they have it; or "+RoundRobin)
	flags.BoolVar(&o.Insecure, "insecure", false, "serve without TLS beyond loopback")
	flags.StringVar(&o.Metrics, "metrics", "", "`address` to serve metrics at, host:port or a port on loopback, in Prometheus' text format")
	o.Kubeconfig.Flags(flags)
	o.Limits.add(flags)
}

// run serves until ctx ends. On SIGHUP it reads the files again.
func run(ctx context.Context, o Options) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	server, err := Start(ctx, o)
	if err != nil {
		return err
	}
	for {
		select {
		case <-hangup:
			server.Reload()
		case <-server.done:
			return server.Wait()
		}
	}
}
