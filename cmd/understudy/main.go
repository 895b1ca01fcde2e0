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
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/demo"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/explain"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/kubeconfig"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/serve"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/watch"
	"github.com/understudy-lb/understudy/discovery/kubernetes"
	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// failure wraps an error that neither the arguments nor the input caused.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	printError(os.Stderr, err)
	os.Exit(exitCode(err))
}

func exitCode(err error) int {
	var f failure
	var w watch.Failure
	var s serve.Failure
	switch {
	case errors.As(err, &f), errors.As(err, &w), errors.As(err, &s):
		return 1
	case errors.Is(err, explain.ErrNoEndpoint), errors.Is(err, watch.ErrUnavailable):
		return 3
	}
	return 2
}

// printError prints err. It prints each problem in an endpoints file on its own line, as
// file:line:column, which editors can parse. It prints joined errors one by one.
func printError(w io.Writer, err error) {
	if several, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok && strings.Contains(err.Error(), "\n") {
		for _, err := range several.Unwrap() {
			printError(w, err)
		}
		return
	}
	problems, ok := errors.AsType[*clusterfile.Error](err)
	if !ok {
		fmt.Fprintln(w, "understudy:", printable.Text(err.Error()))
		return
	}
	for _, p := range problems.Problems {
		fmt.Fprintln(w, printable.Text(fmt.Sprintf("%s:%d:%d: %s", problems.Path, p.Line, p.Column, p.Text)))
	}
	if problems.More > 0 {
		fmt.Fprintf(w, "understudy: %s: and %d more\n", printable.Text(problems.Path), problems.More)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "understudy",
		Short: "Failover and weighted load balancing for gRPC-Go clients, without a mesh",
		Long: `Failover and weighted load balancing for gRPC-Go clients, without a mesh.

  demo     start here: backends die, return errors and recover while calls are made
  explain  show what an endpoints file means, before a channel uses it
  serve    serve endpoints files to a fleet
  watch    show which priority a channel is using, and why
  version  show which build this is

Exit codes: 0 for success, 1 for a failure, 2 for invalid arguments or an invalid file,
3 if no endpoint can take calls.`,
		Version:       thisBuild().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("understudy {{.Version}}\n")
	root.AddCommand(demoCommand(), explainCommand(), serve.Command(), watch.Command(), versionCommand(), backendCommand())
	return root
}

// outputFlag adds the flag -o to a command. The returned function reports whether the flag requests
// JSON.
func outputFlag(command *cobra.Command) func() (bool, error) {
	output := command.Flags().StringP("output", "o", "table", "`table` for people, json for machines")
	return func() (bool, error) {
		switch *output {
		case "table":
			return false, nil
		case "json":
			return true, nil
		}
		return false, fmt.Errorf("output %q: want table or json", *output)
	}
}

func demoCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "demo",
		Short: "Show calls that follow the weights, survive a lost priority, and return",
		Long: `Starts five backends on loopback, in three localities and two priorities, and makes
calls to them without a pause. Meanwhile it kills one backend and then a whole priority,
restores it, changes weights, and makes a priority return an error for every call. The
exit code is 1 if calls do not go where they should.

With --hold, nothing is killed. The calls continue until Ctrl-C, and the command prints
the address of a page on loopback that shows where they go. The page has buttons that
kill, hang and restore a backend, a locality or a priority, make it return errors, and
change weights. "understudy watch" with this address shows the same in a terminal.`,
		Args: cobra.NoArgs,
	}
	hold := command.Flags().Bool("hold", false, "keep running, and serve a page that shows the calls and has controls")
	source := command.Flags().String("source", demo.SourceFile, "`source` of the channel's endpoints: file, or eds for a management server that serves the file")
	wantJSON := outputFlag(command)
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := wantJSON()
		if err != nil {
			return err
		}
		if *source != demo.SourceFile && *source != demo.SourceEDS {
			return fmt.Errorf("source %q: want %s or %s", *source, demo.SourceFile, demo.SourceEDS)
		}
		run := demo.Run
		if *hold {
			if asJSON {
				return errors.New("output json given together with --hold, which has no report: want one of them")
			}
			run = demo.Hold
		}
		err = run(cmd.Context(), demo.Options{Source: *source, JSON: asJSON, Out: cmd.OutOrStdout(), Progress: cmd.ErrOrStderr()})
		if err != nil {
			return failure{err}
		}
		return nil
	}
	return command
}

const explainExamples = `  understudy explain endpoints.yaml
  understudy explain endpoints.yaml --down 10.0.0.1:443 --down us-east/a
  understudy explain endpoints.yaml --down priority:0 -o json
  understudy explain endpoints.yaml --option minReady=0.6 --option outlierDetection=true
  understudy explain clusters.yaml --cluster shop --down cluster:shop-eu
  understudy explain 'srv:///payments.example.com?minReady=0.6'
  understudy explain --context staging kubernetes:///checkout.shop:grpc
  understudy explain --rbac=storefront kubernetes:///checkout.shop:grpc | kubectl apply -f -
  understudy explain endpoints.yaml --zone us-east-1a --option prefer=zone
  kubectl get configmap shop -o jsonpath='{.data.endpoints\.yaml}' | understudy explain -`

func explainCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "explain FILE|TARGET",
		Short: "Show the priorities of an endpoints file, and each endpoint's share of the calls",
		Long: `Shows the priorities of an endpoints file, each endpoint's share of the calls, and what
changes if something is down. The code of the policies computes the result, without
making connections or calls. --option sets an option of the channel, with the name that
it has in the query of a target.

If the file has a list of clusters, each of them is explained, or only the one given with
--cluster. An aggregate has the priorities of the clusters that it names. A DNS name, and
a cluster whose endpoints come from a management server, are shown as one endpoint.

FILE may be - for standard input. If channels would reject the file, the command prints
each problem as file:line:column: text.

A TARGET, such as srv:///payments.example.com or a list us:443,eu:443, is resolved as for
a channel, and the result is explained. Mechanisms that have not answered after 15 s are
omitted.

Exit codes:
  0  in each cluster, at least one endpoint gets calls
  1  the target did not answer, the result could not be written, or the command was interrupted
  2  the file or the arguments are invalid
  3  in at least one cluster, no endpoint can take calls

The fields of the output with -o json are described in docs/explain.md.`,
		Example: explainExamples,
		Args:    cobra.ExactArgs(1),
	}
	cluster := command.Flags().String("cluster", "", "`NAME` of the cluster to explain, in a file with a list of clusters (default: all)")
	down := command.Flags().StringArray("down", nil, "assume that `NAME` is down: address:port, region/zone/sub_zone, priority:N, or cluster:NAME in an aggregate; may be repeated")
	options := command.Flags().StringArray("option", nil, "option of the channel as `NAME=VALUE`, as in the query of a target (docs/options.md); may be repeated")
	location := locationFlags(command)
	wantJSON := outputFlag(command)
	var kubeOptions kubeconfig.Options
	kubeOptions.Flags(command.Flags())
	printRole := roleFlag(command)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		asJSON, err := wantJSON()
		if err != nil {
			return err
		}
		if command.Flags().Changed("rbac") {
			return printRole(args[0])
		}
		return runExplain(cmd, explain.Options{
			File: args[0], Cluster: *cluster, Down: *down, Options: append(*options, location()...), Kubeconfig: kubeOptions, JSON: asJSON, In: cmd.InOrStdin(), Out: cmd.OutOrStdout(),
		})
	}
	return command
}

// roleFlag adds the flag --rbac. The returned function prints the Role that a target needs, for the
// service account in the flag.
func roleFlag(command *cobra.Command) func(target string) error {
	account := command.Flags().String("rbac", "", "print instead the manifests of the Role and the RoleBinding that a kubernetes: target needs, for the service `ACCOUNT` NAME or NAMESPACE:NAME (default: default)")
	command.Flags().Lookup("rbac").NoOptDefVal = "default"
	return func(target string) error {
		text, err := kubernetes.Role(target, *account)
		if err == nil {
			_, err = fmt.Fprint(command.OutOrStdout(), text)
		}
		return err
	}
}

func runExplain(cmd *cobra.Command, opts explain.Options) error {
	debug.SetGCPercent(400) // explain ends soon, so collect garbage less often
	err := explain.Run(cmd.Context(), opts)
	if _, ok := errors.AsType[*explain.OutputError](err); ok || errors.Is(err, explain.ErrNoAnswer) || err != nil && cmd.Context().Err() != nil {
		return failure{err}
	}
	return err
}

// locationFlags adds the flags for the client's location. The returned function returns the flags
// that the user has set, each as NAME=VALUE.
func locationFlags(command *cobra.Command) func() []string {
	names := []string{"zone", "region", "node"}
	for _, name := range names {
		command.Flags().String(name, "", "`NAME` of the client's "+name+", as with --option "+name+"=NAME")
	}
	return func() (values []string) {
		for _, name := range names {
			if value, _ := command.Flags().GetString(name); value != "" {
				values = append(values, name+"="+value)
			}
		}
		return values
	}
}

func backendCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-backend ADDRESS",
		Short:  "Run one backend of the demo until stdin ends",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := demo.RunBackend(args[0], os.Stdin, os.Stdout); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}
