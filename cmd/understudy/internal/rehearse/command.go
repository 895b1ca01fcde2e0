package rehearse

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/explain"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
)

// Failure is an error that has nothing to do with the arguments or the input.
type Failure struct{ error }

func (f Failure) Unwrap() error { return f.error }

const examples = `  understudy rehearse endpoints.yaml --rate 60/s --capacity p0=40/s,p1=25/s
  understudy rehearse endpoints.yaml --rate 60/s --capacity p0=40/s,p1=25/s --fault "p0 "
  understudy rehearse endpoints.yaml --rate 60/s --capacity p0=40/s,p1=25/s --budget budget.json --write
  understudy rehearse endpoints.yaml --rate 60/s --capacity p0=40/s,p1=25/s --budget budget.json`

const longHelp = `Plays three minutes of a fleet of clients for each fault, in virtual time, with the code
that decides in channels: a minute in which a priority is killed, drained, hangs, returns
errors, is slower or smaller; more load than the first priority can carry; faults of two
priorities at once; and a restart of all clients while a source of endpoints does not
answer. The table shows how many calls are lost, how long no call is answered, how long
after the fault all is normal again, and the highest load of each priority as a part of
what it can answer (docs/howto/rehearse.md).

FILE and TARGET are as for explain. Options are those of Recommended() unless the target or
--option says otherwise. The same seed gives the same table.

Exit codes: 0, 1 if a row is above the budget, 2 if the arguments or the file are invalid.`

func Command() *cobra.Command {
	var o Options
	command := &cobra.Command{
		Use:     "rehearse FILE|TARGET",
		Short:   "Play outages of each priority in virtual time, and show what they cost",
		Long:    longHelp,
		Example: examples,
		Args:    cobra.ExactArgs(1),
	}
	flags := command.Flags()
	flags.IntVar(&o.Clients, "clients", 100, "`number` of clients")
	o.Input.Rate = 100
	o.Input.Flags(flags)
	flags.DurationVar(&o.Deadline, "deadline", time.Second, "deadline of each call")
	flags.DurationVar(&o.Service, "service", 50*time.Millisecond, "time that a server needs for a call")
	flags.StringArrayVar(&o.Faults, "fault", nil, "play only rows whose `name` begins with this; may be repeated")
	flags.Uint64Var(&o.Seed, "seed", 1, "`number` from which all chance comes")
	flags.StringVar(&o.Budget, "budget", "", "`FILE` with what a row may cost; the exit code is 1 if one costs more")
	flags.BoolVar(&o.Write, "write", false, "write the file of --budget from this run; with --fault, only the rows that are played")
	flags.StringVar(&o.Plot, "plot", "", "draw the calls of one row over time to `FILE`, an SVG")
	output := flags.StringP("output", "o", "table", "`format`: table for people, or json for machines")
	command.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if *output != "table" && *output != "json" {
			return fmt.Errorf("-o %.100q: want table or json", *output)
		}
		if o.Write && o.Budget == "" {
			return errors.New("--write: want the name of the file in --budget")
		}
		o.Input.File, o.Input.In, o.JSON, o.Out, o.Progress = args[0], cmd.InOrStdin(), *output == "json", cmd.OutOrStdout(), table.Terminal(cmd.ErrOrStderr())
		err = Run(cmd.Context(), o)
		if errors.As(err, new(*explain.OutputError)) || errors.Is(err, explain.ErrNoAnswer) || errors.Is(err, ErrAboveBudget) || cmd.Context().Err() != nil {
			return Failure{err}
		}
		return err
	}
	return command
}
