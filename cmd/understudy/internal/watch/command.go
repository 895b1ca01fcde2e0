package watch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const longHelp = `Shows which priority gets the calls, why no higher priority does, the state and share of
each endpoint, and the latest events (docs/watch.md).

With a TARGET, it opens a channel to it, as a program does. The channel makes no calls
unless --rate is given. Connections to this machine do not use TLS; all other connections
do, unless --insecure is given.

With a URL, it shows the channels of a program that serves debug.Handler at this URL.

In a terminal, the text is redrawn in place until Ctrl-C is pressed. Otherwise each event
is printed as a line, followed by the tree when another priority comes into use.

Exit codes when a signal or --for ends the watch:
  0  calls could be sent
  1  the page could not be reached, or the result could not be written
  2  the target or the arguments are invalid
  3  calls could not be sent: they waited or failed; or all calls of --rate failed`

const examples = `  understudy watch us.example.com:443,eu.example.com:443 --rate 10 --option outlierDetection=true
  understudy watch http://127.0.0.1:8080/debug/understudy/
  understudy watch --for 5s -o json eds://127.0.0.1:18000/shop`

func Command() *cobra.Command {
	var o Options
	command := &cobra.Command{
		Use:     "watch TARGET|URL",
		Short:   "Show live which priority a channel uses, and why",
		Long:    longHelp,
		Example: examples,
		Args:    cobra.ExactArgs(1),
	}
	flags := command.Flags()
	flags.StringArrayVar(&o.Dial.Options, "option", nil, "option of the channel as `NAME=VALUE`, as in the query of a target (docs/options.md); may be repeated")
	flags.Float64Var(&o.Rate, "rate", 0, "`calls` of grpc.health.v1.Health/Check to make each second, at most 1000")
	flags.StringVar(&o.Service, "service", "", "`service` in the requests of these calls (default: the server as a whole)")
	flags.DurationVar(&o.Timeout, "timeout", time.Second, "timeout of each of these calls")
	flags.DurationVar(&o.For, "for", 0, "`duration` of the watch (default: until it is interrupted)")
	flags.StringVarP(&o.Output, "output", "o", "auto", "`format`: lines, json, or auto for a text that is redrawn in a terminal and lines otherwise")
	flags.BoolVar(&o.Dial.TLS.Always, "tls", false, "use TLS for connections to this machine, too")
	flags.BoolVar(&o.Dial.TLS.Insecure, "insecure", false, "connect without TLS, also to other machines")
	flags.StringVar(&o.Dial.TLS.CA, "tls-ca", "", "PEM `file` with the root certificates for servers (default: the system's)")
	flags.StringVar(&o.Dial.TLS.Certificate, "tls-cert", "", "PEM `file` with the client's certificate")
	flags.StringVar(&o.Dial.TLS.Key, "tls-key", "", "PEM `file` with the key of the certificate")
	flags.BoolVar(&o.Dial.XDSInsecure, "xds-insecure", false, "connect to the management server of an eds: target without TLS, also on other machines")
	flags.StringVar(&o.Dial.ServiceConfig, "service-config", "", "service config of the channel in `JSON`, for example with healthCheckConfig")
	flags.DurationVar(&o.Dial.KeepAlive, "keepalive", 0, "`interval` of keepalive pings, which detect hung servers; servers must allow them")
	command.RunE = func(cmd *cobra.Command, args []string) error {
		o.Target, o.Out = args[0], cmd.OutOrStdout()
		if err := o.validate(cmd.Flags()); err != nil {
			return err
		}
		return Run(cmd.Context(), o)
	}
	return command
}

// These make no sense with the URL of a debug page.
var targetFlags = []string{"option", "rate", "service", "timeout", "insecure", "tls", "xds-insecure", "service-config", "keepalive"}

func (o *Options) validate(flags *pflag.FlagSet) (err error) {
	if !slices.Contains([]string{"auto", "lines", "json"}, o.Output) {
		return fmt.Errorf("output %q: want auto, lines or json", o.Output)
	}
	if isPage(o.Target) {
		flags.Visit(func(f *pflag.Flag) {
			if slices.Contains(targetFlags, f.Name) {
				err = fmt.Errorf("--%s is given with the URL of a page, want it only with a target", f.Name)
			}
		})
		return err
	}
	switch {
	case !(o.Rate >= 0 && o.Rate <= 1000):
		return fmt.Errorf("--rate %v: want 0 to 1000 calls a second", o.Rate)
	case o.Rate == 0 && (flags.Changed("service") || flags.Changed("timeout")):
		return errors.New("--service or --timeout is given without --rate, want --rate too: without it, no calls are made")
	}
	return nil
}
