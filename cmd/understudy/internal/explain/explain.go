// Package explain says what the policies make of an endpoints file, or of what a target leads to: which endpoint
// gets which share of the calls, and what becomes of it when something is down.
package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	_ "github.com/understudy-lb/understudy" // the policies that trees are made of
	"github.com/understudy-lb/understudy/cmd/understudy/internal/kubeconfig"
	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/topology"
)

// ErrNoEndpoint is returned by Run, after it has printed the result, where no endpoint
// can take calls.
var ErrNoEndpoint = errors.New("no endpoint can take calls")

// OutputError is returned by Run where the result could not be written.
type OutputError struct{ Err error }

// Error returns the reason.
func (e *OutputError) Error() string { return fmt.Sprintf("write the result: %v", e.Err) }

// Unwrap returns the error of the writer.
func (e *OutputError) Unwrap() error { return e.Err }

// stdin is what standard input is called as a file, and its name in messages.
const (
	stdin     = "-"
	stdinName = "stdin"
)

// Options say what to explain.
type Options struct {
	// File is the path of the endpoints file, or "-" for In, or a target.
	File string
	// Cluster is the one to explain of those in the file, "" for all.
	Cluster string
	// Down names what is down: an address, a locality, "cluster:NAME" of an aggregate, or
	// "priority:N".
	Down []string
	// Options are those of a channel, NAME=VALUE as in the query of a target.
	Options []string
	// Kubeconfig says how to reach Kubernetes, where the target needs it.
	Kubeconfig kubeconfig.Options
	// JSON prints the result as JSON, and no table.
	JSON bool
	// In is standard input, Out where the result goes.
	In  io.Reader
	Out io.Writer
}

// Run explains a file or a target. Its errors are of the input, but for ErrNoEndpoint, ErrNoAnswer, an
// *OutputError, and ctx's.
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

// find returns what is to be explained, whether as a list, and what the options say of the policies.
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

// parseOptions returns what options of a channel say of the policies.
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

// write writes the results, all at once: as a list, or the only one.
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

// measure notes each endpoint's share of the calls.
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

// owners returns the endpoint of each address: of several with one address, the first that is
// healthy, as in the tree.
func (r *Result) owners() map[partAddress]*Endpoint {
	owner := make(map[partAddress]*Endpoint)
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		if e.LocalityWeight == 0 {
			continue // without traffic, it may have the addresses of another
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
