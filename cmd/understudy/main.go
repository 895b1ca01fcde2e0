// Command understudy demonstrates failover and weighted load balancing of gRPC calls, explains
// endpoints files, serves them to a fleet, and watches channels.
//
// Exit codes: 0 for success, 1 for a failure, 2 for wrong arguments or input, 3 if what it explains
// or watches cannot take calls.
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
	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/printable"
)

// failure is an error that neither the arguments nor the input caused.
type failure struct{ error }

// Unwrap returns the error.
func (f failure) Unwrap() error { return f.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	complain(os.Stderr, err)
	os.Exit(exitCode(err))
}

func exitCode(err error) int {
	var f failure
	var w watch.Failure
	var s serve.Failure
	switch {
	case errors.As(err, &f), errors.As(err, &w), errors.As(err, &s):
		return 1
	case errors.Is(err, explain.ErrNoEndpoint), errors.Is(err, watch.ErrNotTaken):
		return 3
	}
	return 2
}

// complain prints err. Problems inside a file get one line each, in the form that editors parse.
// Joined errors are printed one by one.
func complain(w io.Writer, err error) {
	// Only joined errors have several lines.
	if several, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok && strings.Contains(err.Error(), "\n") {
		for _, err := range several.Unwrap() {
			complain(w, err)
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

  demo     begin here: backends die, answer errors and come back under real calls
  explain  what a file of endpoints means, before a channel uses it
  serve    such files to a fleet
  watch    which priority a channel uses right now, and why

Exit codes: 0 if all is well, 1 if something failed, 2 if the arguments or a file are
wrong, and 3 if calls cannot be taken.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("understudy {{.Version}}\n")
	root.AddCommand(demoCommand(), explainCommand(), serve.Command(), watch.Command(), versionCommand(), backendCommand())
	return root
}

// outputFlag adds the flag -o to a command. It returns a function that reports whether the flag
// asks for JSON.
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
		Short: "Watch calls follow the weights, survive a lost priority, and come back",
		Long: `Starts five backends on loopback, in three localities and two priorities, and
sends calls all the while: through the death of one backend, of a whole priority,
its return, a change of weights, and a priority that answers every call with an error.
Exits with 1 if the calls do not go where they should.

With --hold nothing is killed: the calls go on until Ctrl-C, and a page on loopback,
whose address is printed, shows where they go. It has buttons to kill, hang and restore
a backend, a locality or a priority, to make it answer errors, and to change weights.
"understudy watch" with that address shows the same in a terminal.`,
		Args: cobra.NoArgs,
	}
	hold := command.Flags().Bool("hold", false, "keep it running, with a page that shows it and has controls")
	source := command.Flags().String("source", demo.SourceFile, "where the channel's endpoints come from: file, or eds for a management server on that file")
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
		Short: "Show the tree that an endpoints file makes, and each endpoint's share of the calls",
		Long: `Shows the tree that an endpoints file makes, each endpoint's share of the calls, and
what becomes of it when something is down. The shares are not computed but counted:
the policies are built, and asked a million times. Options of a channel, by the names
that the query of a target has, change what the policies do.

Of a file with a list of clusters each is explained, or the one that --cluster names. An
aggregate has the priorities of the clusters that it names. A name in DNS, and the
endpoints that a management server has, stand there as one endpoint each.

FILE may be - for standard input. A file that no channel would take is an error, with
a line for each problem: file:line:column: text.

A TARGET, such as srv:///payments.example.com, is looked up as a channel to it would, and what
it leads to now is explained. Parts that have not answered after 15 s are left out.

Exit codes:
  0  at least one endpoint gets calls, in each cluster that is explained
  1  the target did not answer, the result could not be written, or the command was interrupted
  2  the file or the arguments are wrong
  3  no endpoint can take calls, in one of them

The fields of the output with -o json are described in docs/explain.md.`,
		Example: explainExamples,
		Args:    cobra.ExactArgs(1),
	}
	cluster := command.Flags().String("cluster", "", "`NAME` of the one to explain of a file with a list of clusters (default: each)")
	down := command.Flags().StringArray("down", nil, "`NAME` of what is down: address:port, region/zone/sub_zone, priority:N, or cluster:NAME in an aggregate; may be repeated")
	options := command.Flags().StringArray("option", nil, "`NAME=VALUE` of an option of the channel, as in the query of a target (docs/options.md); may be repeated")
	place := placeFlags(command)
	wantJSON := outputFlag(command)
	var server kubeconfig.Options
	server.Flags(command.Flags())
	role := roleFlag(command)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		asJSON, err := wantJSON()
		if err != nil {
			return err
		}
		if command.Flags().Changed("rbac") {
			return role(args[0])
		}
		return runExplain(cmd, explain.Options{
			File: args[0], Cluster: *cluster, Down: *down, Options: append(*options, place()...), Kubeconfig: server, JSON: asJSON, In: cmd.InOrStdin(), Out: cmd.OutOrStdout(),
		})
	}
	return command
}

// roleFlag adds the flag that prints a Role. It returns a function that prints the Role for a
// target.
func roleFlag(command *cobra.Command) func(target string) error {
	account := command.Flags().String("rbac", "", "print, in place of the tree, the manifests of a Role and a RoleBinding that a target of kubernetes: needs, for a service `ACCOUNT`: NAME, or NAMESPACE:NAME (default: default)")
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
	debug.SetGCPercent(400) // the process is short-lived
	err := explain.Run(cmd.Context(), opts)
	if _, ok := errors.AsType[*explain.OutputError](err); ok || errors.Is(err, explain.ErrNoAnswer) || err != nil && cmd.Context().Err() != nil {
		return failure{err}
	}
	return err
}

// placeFlags adds the flags for the client's location. It returns a function that returns their
// values as options.
func placeFlags(command *cobra.Command) func() []string {
	names := []string{"zone", "region", "node"}
	for _, name := range names {
		command.Flags().String(name, "", "`NAME` of the "+name+" of a client that is explained, as --option "+name+"=NAME")
	}
	return func() (given []string) {
		for _, name := range names {
			if value, _ := command.Flags().GetString(name); value != "" {
				given = append(given, name+"="+value)
			}
		}
		return given
	}
}

func backendCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-backend ADDRESS",
		Short:  "One backend of the demo; ends when stdin does",
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
