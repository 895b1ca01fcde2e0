// Package explain computes each endpoint's share of the calls for a file or target, and where calls
// go when endpoints are down. All decisions are made in internal/rehearse, which is built from the
// policies' own cores.
package explain

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	_ "github.com/understudy-lb/understudy" // registers the policies
	"github.com/understudy-lb/understudy/cmd/understudy/internal/kubeconfig"
	"github.com/understudy-lb/understudy/internal/config/options"
)

// ErrNoEndpoint is returned by Run if no endpoint can receive calls. By then, the result has been
// printed.
var ErrNoEndpoint = errors.New("no endpoint can take calls")

// OutputError is returned by Run if it can't write the result.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return fmt.Sprintf("write the result: %v", e.Err) }

func (e *OutputError) Unwrap() error { return e.Err }

type Options struct {
	File string // or a target, or "-" for standard input
	// Cluster selects one cluster of the file. By default, we explain them all.
	Cluster string
	// Down lists what to assume is down: addresses, localities, "priority:N", or "cluster:NAME" for
	// a cluster of an aggregate.
	Down []string
	// Options are channel options as in the query of a target, each NAME=VALUE.
	Options []string
	// Capacity is how many calls per second an endpoint of each priority can answer. The key is the
	// priority, e.g. p0, and the value is like 20/s.
	Capacity   map[string]string
	Rate       float64 // calls per second by all clients together, 0 if unknown
	Kubeconfig kubeconfig.Options
	JSON       bool
	In         io.Reader
	Out        io.Writer
}

// Flags adds the flags that explain and rehearse have in common.
func (o *Options) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Cluster, "cluster", "", "`NAME` of the cluster, in a file with a list of clusters; explain takes all of them without it")
	flags.StringArrayVar(&o.Options, "option", nil, "option of the channel as `NAME=VALUE`, as in the query of a target (docs/options.md); may be repeated")
	flags.StringToStringVar(&o.Capacity, "capacity", nil, "calls that one endpoint of each priority can answer in a second, such as `p0=40/s,p1=25/s`")
	usage := "`calls` that all clients make in a second, such as 60/s"
	if o.Rate > 0 {
		usage += fmt.Sprintf(" (default %v/s)", o.Rate)
	}
	flags.Func("rate", usage, func(value string) (err error) {
		o.Rate, err = parseRate(value)
		return err
	})
	o.Kubeconfig.Flags(flags)
}

// Run explains a file or a target. An error means that the input is invalid, unless it's
// ErrNoEndpoint, ErrNoAnswer, an *OutputError or ctx's error.
func Run(ctx context.Context, o Options) error {
	results, asList, settings, err := Resolve(ctx, o)
	if err != nil {
		return err
	}
	var none error
	for _, r := range results {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.play(settings)
		if err := r.warn(o, settings.Overflow); err != nil {
			return err
		}
		if r.Priority == nil {
			none = ErrNoEndpoint
		}
	}
	if err := write(results, asList, o); err != nil {
		return &OutputError{err}
	}
	return none
}

// Resolve returns one result for each cluster, along with the settings of channels. Whatever should
// be down is already marked as such, but the shares aren't filled in yet. asList means that the
// file has a list of clusters.
func Resolve(ctx context.Context, o Options) (results []*Result, asList bool, settings options.Settings, err error) {
	subjects, asList, settings, err := o.subjects(ctx)
	if err != nil {
		return nil, false, settings, err
	}
	for _, s := range subjects {
		r, err := newResult(s, settings)
		if err != nil {
			return nil, false, settings, err
		}
		r.Options = append(r.Options, o.Options...)
		results = append(results, r)
	}
	for _, name := range o.Down {
		found := false
		for _, r := range results {
			found = r.takeDown(name) || found
		}
		if !found {
			return nil, false, settings, fmt.Errorf("--down %s: %s has no such address, locality, priority or cluster of an aggregate%s", name, o.File, example(results))
		}
	}
	return results, asList, settings, nil
}
