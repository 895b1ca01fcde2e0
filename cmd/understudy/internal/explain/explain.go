// Package explain computes each endpoint's share of the calls for a file or target, and where calls
// go when endpoints are down.
package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	_ "github.com/understudy-lb/understudy" // registers the policies
	"github.com/understudy-lb/understudy/cmd/understudy/internal/kubeconfig"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/topology"
)

// ErrNoEndpoint is returned by Run, after it has printed the result, if no endpoint can receive
// calls.
var ErrNoEndpoint = errors.New("no endpoint can take calls")

// OutputError is returned by Run if it cannot write the result.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return fmt.Sprintf("write the result: %v", e.Err) }

func (e *OutputError) Unwrap() error { return e.Err }

// The argument for standard input, and its name in messages.
const (
	stdin     = "-"
	stdinName = "stdin"
)

// Options configure Run.
type Options struct {
	File string
	// Cluster selects one cluster of the file. With "", all clusters are explained.
	Cluster string
	// Down lists what is down: addresses, localities, "cluster:NAME" for a cluster of an aggregate,
	// or "priority:N".
	Down []string
	// Options are channel options as in the query of a target, each NAME=VALUE.
	Options    []string
	Kubeconfig kubeconfig.Options
	JSON       bool
	In         io.Reader
	Out        io.Writer
}

// Run explains a file or a target. An error means that the input is wrong, unless it is
// ErrNoEndpoint, ErrNoAnswer, an *OutputError or ctx's error.
func Run(ctx context.Context, opts Options) error {
	subjects, list, settings, err := find(ctx, opts)
	if err != nil {
		return err
	}
	if err := takeDown(subjects, settings, opts); err != nil {
		return err
	}
	for _, s := range subjects {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.result.Options = append(s.result.Options, opts.Options...)
		simulation, err := newSimulation(s.plan, s.result.owners())
		if err != nil {
			return err
		}
		s.result.measure(simulation)
		s.result.addTiers(simulation, settings)
	}
	if err := write(subjects, list, opts); err != nil {
		return &OutputError{err}
	}
	for _, s := range subjects {
		if s.result.Priority == nil {
			return ErrNoEndpoint
		}
	}
	return nil
}

// find returns the clusters to explain and the channel's settings. list means that the results are
// printed as a list.
func find(ctx context.Context, opts Options) (subjects []*subject, list bool, settings topology.Settings, err error) {
	if isTarget(opts.File) {
		if opts.Cluster != "" {
			return nil, false, settings, fmt.Errorf("--cluster %.100q: a target has none; want a file with a list of clusters", opts.Cluster)
		}
		s, settings, err := followed(ctx, opts)
		return []*subject{s}, false, settings, err
	}
	doc, err := load(opts)
	if err == nil {
		settings, err = parseOptions(opts.Options)
	}
	if err == nil {
		subjects, err = subjectsOf(doc, opts)
	}
	return subjects, err == nil && doc.Clusters != nil && opts.Cluster == "", settings, err
}

func parseOptions(given []string) (topology.Settings, error) {
	values := make(url.Values)
	for _, option := range given {
		name, value, ok := strings.Cut(option, "=")
		if !ok {
			return topology.Settings{}, fmt.Errorf("--option %.100q: want NAME=VALUE, such as minReady=0.6", option)
		}
		values.Add(name, value)
	}
	settings, err := options.ParseSettings(values)
	if err != nil {
		return topology.Settings{}, fmt.Errorf("--option: %w", err)
	}
	return topology.Settings(settings), nil
}

func load(opts Options) (*clusterfile.Document, error) {
	if opts.File == stdin {
		return clusterfile.LoadFrom(opts.In, stdinName)
	}
	return clusterfile.Load(opts.File)
}

// write formats the results, and writes them at once. list means that they are printed as a list.
func write(subjects []*subject, list bool, opts Options) error {
	var text bytes.Buffer
	if opts.JSON {
		var value any = subjects[0].result
		if list {
			results := Results{Clusters: []*Result{}}
			for _, s := range subjects {
				results.Clusters = append(results.Clusters, s.result)
			}
			value = results
		}
		if err := printJSON(&text, value); err != nil {
			return err
		}
	} else {
		for i, s := range subjects {
			if i > 0 {
				fmt.Fprintln(&text)
			}
			s.result.printTable(&text, table.PainterFor(opts.Out))
		}
	}
	_, err := opts.Out.Write(text.Bytes())
	return err
}

func (r *Result) measure(s *simulation) {
	o := s.run(hypothesis{down: (*Endpoint).isDown})
	if o.err != nil {
		r.Error = o.err.Error()
	}
	r.Dropped = o.dropped
	for e, share := range o.shares {
		e.Share = share
		if share > 0 && (r.Priority == nil || e.Priority < *r.Priority) {
			r.Priority = &e.Priority
		}
	}
}

// owners maps each address to its endpoint. If several endpoints have the same address, it belongs
// to the first healthy one, as in the policy tree.
func (r *Result) owners() map[partAddress]*Endpoint {
	owner := make(map[partAddress]*Endpoint)
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		if e.LocalityWeight == 0 {
			continue // an endpoint that gets no calls must not own an address of another one
		}
		for _, address := range e.addresses() {
			key := partAddress{e.part, address}
			if first, taken := owner[key]; !taken || first.Health != "" && e.Health == "" {
				owner[key] = e
			}
		}
	}
	return owner
}
