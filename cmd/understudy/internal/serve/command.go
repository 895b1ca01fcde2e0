package serve

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/understudy-lb/understudy/weightedroundrobin"
)

// Command returns the command "serve". It ends when the context of the command does.
func Command() *cobra.Command {
	var o Options
	var output, level string
	command := &cobra.Command{
		Use:   "serve DIR|FILE...",
		Short: "Serve endpoints files to a fleet, as an xDS management server",
		Long: `Serves the endpoints in files by Envoy's v3 aggregated discovery service (ADS). Each
file is a cluster, named by its cluster_name or else by the file, or a list of clusters,
aggregates among them. Clients are

  eds://127.0.0.1:18000/NAME   of this project
  xds:///NAME                  of any gRPC, with a bootstrap that names this server

Edits are pushed at once. A broken edit is rejected, with file:line:column, and the
last good one is served on. A file that is broken at the start is reported and left
out; with --cache it is served as it was before. A cluster whose file is gone is
removed after --removal-delay. A directory that cannot be read removes nothing.`,
		Example: `  understudy serve endpoints/
  understudy serve payments.yaml --listen :18000 --tls-cert s.pem --tls-key s.key --tls-client-ca ca.pem`,
		Args: cobra.ArbitraryArgs, // Start says what to give where there are none
	}
	flags := command.Flags()
	flags.StringVar(&o.Listen, "listen", DefaultListen, "`address` to serve, host:port; TLS is needed beyond loopback")
	flags.StringVar(&o.TLS.Certificate, "tls-cert", "", "`file` with the server's certificate, in PEM")
	flags.StringVar(&o.TLS.Key, "tls-key", "", "`file` with the key of the certificate, in PEM")
	flags.StringVar(&o.TLS.ClientCA, "tls-client-ca", "", "`file` with the roots of the certificates that clients must show (mTLS)")
	flags.DurationVar(&o.RemovalDelay, "removal-delay", DefaultRemovalDelay, "`duration` for which a cluster is still served after its file is gone")
	flags.StringVar(&o.Cache, "cache", "", "`directory` in which the last good form of each cluster survives a restart")
	flags.BoolVar(&o.Strict, "strict", false, "refuse to start where a file is not good, or there is none")
	flags.StringVar(&o.Policy, "policy", weightedroundrobin.Name, "`policy` that xds: clients are told to use, if they have it; or "+RoundRobin)
	flags.BoolVar(&o.Insecure, "insecure", false, "serve without TLS beyond loopback")
	flags.StringVar(&o.Metrics, "metrics", "", "`address` to serve metrics at, host:port or a port on loopback, in Prometheus' text format")
	flags.StringVar(&level, "log-level", "info", "`level` from which on is logged: debug (with what each client asks for and accepts), info, warn or error")
	flags.StringVarP(&output, "output", "o", "text", "form of the log: `text` for people, json for machines")
	command.RunE = func(cmd *cobra.Command, args []string) error {
		log, err := newLog(output, level, cmd.OutOrStdout())
		if err != nil {
			return err
		}
		o.Paths, o.Log = args, log
		server, err := Start(cmd.Context(), o)
		if err != nil {
			return err
		}
		return server.Wait()
	}
	return command
}

func newLog(output, level string, w io.Writer) (*slog.Logger, error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	least, known := levels[level]
	if !known {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: least}
	switch output {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("output %q: want text or json", output)
}
