// Command understudy demonstrates failover and weighted load balancing of gRPC calls, explains
// endpoints files, serves them to clients, and watches channels.
//
// The exit code is 0 for success, 1 for a failure, 2 for invalid arguments or input, and 3 if
// explain or watch finds that no endpoint can take calls.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	_ "google.golang.org/grpc/balancer/leastrequest" // policies that a target may name
	_ "google.golang.org/grpc/balancer/ringhash"
	_ "google.golang.org/grpc/balancer/weightedroundrobin"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/demo"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/explain"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/rehearse"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/serve"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/watch"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// failure marks errors that aren't about the arguments or the input.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

func asFailure(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		printError(os.Stderr, err)
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	switch {
	case errors.As(err, new(failure)), errors.As(err, new(watch.Failure)), errors.As(err, new(serve.Failure)), errors.As(err, new(rehearse.Failure)):
		return 1
	case errors.Is(err, explain.ErrNoEndpoint), errors.Is(err, watch.ErrUnavailable):
		return 3
	}
	return 2
}

func printError(w io.Writer, err error) {
	// If there's more than one problem in an endpoints file, each gets its own line. They start
	// with file:line:column, so that editors can parse them.
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) && strings.Contains(err.Error(), "\n") {
		for _, err := range several.Unwrap() {
			printError(w, err)
		}
		return
	}
	invalid, ok := errors.AsType[*messages.Invalid](err)
	if !ok || invalid.Problems[0].At.File == "" {
		fmt.Fprintln(w, "understudy:", printable.Text(err.Error()))
		return
	}
	for _, p := range invalid.Problems {
		fmt.Fprintln(w, printable.Text(p.String()))
	}
	if invalid.More > 0 {
		fmt.Fprintf(w, "understudy: %s: and %d more\n", printable.Text(invalid.Problems[0].At.File), invalid.More)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "understudy",
		Short: "Failover and weighted load balancing for gRPC-Go clients, without a mesh",
		Long: `Failover and weighted load balancing for gRPC-Go clients, without a mesh. Start with demo.

Exit codes: 0 for success, 1 for a failure, 2 for invalid arguments or an invalid file,
3 if no endpoint can take calls.`,
		Version:       thisBuild().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("understudy {{.Version}}\n")
	root.AddCommand(demoCommand(), explainCommand(), rehearse.Command(), serve.Command(), watch.Command(), versionCommand())
	return root
}

func outputFlag(command *cobra.Command) (wantsJSON *bool) {
	asJSON := new(false)
	command.Flags().FuncP("output", "o", "`table` for people (the default), or json for machines", func(output string) error {
		*asJSON = output == "json"
		if output != "table" && !*asJSON {
			return errors.New("want table or json")
		}
		return nil
	})
	return asJSON
}

func demoCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "demo",
		Short: "Show calls that follow the weights, survive a lost priority, and return",
		Long: `Starts five backends on loopback, in three localities and two priorities, and makes
calls to them. Meanwhile it kills one backend and then a whole priority, restores it,
changes weights, makes a priority return an error for every call, and gives it more calls
than it can answer. Each phase ends when the calls show its effect, after half a minute in
all, and prints a line: the calls, how many of them failed, the priority in use, and each
priority's share of the last calls. The exit code is 1 if calls do not go where they should.

With --hold, the calls continue until Ctrl-C, and a page on loopback shows where they go.
It has buttons that kill, hang, fill and restore a backend, a locality or a priority, or make
it return errors. "understudy watch" shows the same in a terminal.`,
		Args: cobra.NoArgs,
	}
	hold := command.Flags().Bool("hold", false, "keep running, and serve a page that shows the calls and has controls")
	source := command.Flags().String("source", demo.SourceFile, "`source` of the channel's endpoints: file, or eds for a management server that serves the file")
	asJSON := outputFlag(command)
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		run := demo.Run
		if *hold {
			run = demo.Hold
		}
		switch {
		case *source != demo.SourceFile && *source != demo.SourceEDS:
			return fmt.Errorf("source %q: want %s or %s", *source, demo.SourceFile, demo.SourceEDS)
		case *hold && *asJSON:
			return errors.New("output json given together with --hold, which has no report: want one of them")
		}
		return asFailure(run(cmd.Context(), demo.Options{Source: *source, JSON: *asJSON, Out: cmd.OutOrStdout(), Progress: cmd.ErrOrStderr()}))
	}
	return command
}

const explainExamples = `  understudy explain endpoints.yaml
  understudy explain endpoints.yaml --down 10.0.0.1:443 --down us-east/a
  understudy explain clusters.yaml --cluster shop --down cluster:shop-eu
  understudy explain endpoints.yaml --capacity p0=40/s,p1=25/s --rate 60/s
  understudy explain 'srv:///payments.example.com?warmStandby=1'
  understudy explain --context staging kubernetes:///checkout.shop:grpc
  understudy explain endpoints.yaml --option prefer=zone --option zone=us-east-1a
  kubectl get configmap shop -o jsonpath='{.data.endpoints\.yaml}' | understudy explain -`

func explainCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "explain FILE|TARGET",
		Short: "Show the priorities of an endpoints file, and each endpoint's share of the calls",
		Long: `Shows the priorities of an endpoints file, each endpoint's share of the calls, and what
changes if something is down, without making connections or calls (docs/explain.md). It
warns of a priority that cannot carry the calls of the first one: by the weights of the
endpoints, or by --capacity and --rate.
FILE may be - for standard input. If channels would reject the file, each problem is
printed as file:line:column: text. Endpoints that a DNS name or a management server
provides are shown as one endpoint.

A TARGET, such as srv:///payments.example.com or a list us:443,eu:443, is resolved as for
a channel. Mechanisms that have not answered after 15 s are omitted.

Exit codes:
  0  in each cluster, at least one endpoint gets calls
  1  the target did not answer, the result could not be written, or the command was interrupted
  2  the file or the arguments are invalid
  3  in at least one cluster, no endpoint can take calls`,
		Example: explainExamples,
		Args:    cobra.ExactArgs(1),
	}
	var o explain.Options
	o.Flags(command.Flags())
	command.Flags().StringArrayVar(&o.Down, "down", nil, "assume that `NAME` is down: address:port, region/zone/sub_zone, priority:N, or cluster:NAME in an aggregate; may be repeated")
	asJSON := outputFlag(command)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		o.File, o.JSON, o.In, o.Out = args[0], *asJSON, cmd.InOrStdin(), cmd.OutOrStdout()
		err := explain.Run(cmd.Context(), o)
		if errors.As(err, new(*explain.OutputError)) || errors.Is(err, explain.ErrNoAnswer) || cmd.Context().Err() != nil {
			return asFailure(err)
		}
		return err
	}
	return command
}
