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
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
)

// ErrNoEndpoint is returned by Run, after it has printed the result, if no endpoint can receive
// calls.
var ErrNoEndpoint = errors.New("no endpoint can take calls")

// OutputError is returned by Run if it cannot write the result.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return fmt.Sprintf("write the result: %v", e.Err) }

func (e *OutputError) Unwrap() error { return e.Err }

// stdin is the argument for standard input, and stdinName is the name of standard input in
// messages.
const (
	stdin     = "-"
	stdinName = "stdin"
)

// Options configure Run.
type Options struct {
	File string
	// Cluster selects one cluster of the file. If it is "", all clusters are explained.
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

// Run explains a file or a target. An error means that the input is invalid, unless it is
// ErrNoEndpoint, ErrNoAnswer, an *OutputError or ctx's error.
func Run(ctx context.Context, opts Options) error {
	explanations, asList, settings, err := resolveInput(ctx, opts)
	if err != nil {
		return err
	}
	if err := applyDown(explanations, settings, opts); err != nil {
		return err
	}
	for _, s := range explanations {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.result.Options = append(s.result.Options, opts.Options...)
		simulation, err := newSimulation(s.plan, s.result.owners())
		if err != nil {
			return err
		}
		s.result.computeShares(simulation)
		s.result.addTiers(simulation, settings)
	}
	if err := write(explanations, asList, opts); err != nil {
		return &OutputError{err}
	}
	for _, s := range explanations {
		if s.result.Priority == nil {
			return ErrNoEndpoint
		}
	}
	return nil
}

// Resolve returns the endpoints of a file or a target, without shares, and the settings of its
// channels. The file must have one cluster, or opts must name one.
func Resolve(ctx context.Context, opts Options) (*Result, topology.Settings, error) {
	explanations, _, settings, err := resolveInput(ctx, opts)
	if err == nil {
		err = applyDown(explanations, settings, opts)
	}
	if err != nil {
		return nil, settings, err
	}
	if len(explanations) != 1 {
		return nil, settings, fmt.Errorf("%s has %d clusters, want one: name it with --cluster", opts.File, len(explanations))
	}
	return explanations[0].result, settings, nil
}

// resolveInput returns the clusters to explain and the channel's settings. asList means that the
// results are printed as a list.
func resolveInput(ctx context.Context, opts Options) (explanations []*explanation, asList bool, settings topology.Settings, err error) {
	if isTarget(opts.File) {
		if opts.Cluster != "" {
			return nil, false, settings, fmt.Errorf("--cluster %.100q: given with a target; want a file with a list of clusters", opts.Cluster)
		}
		s, settings, err := resolveTarget(ctx, opts)
		return []*explanation{s}, false, settings, err
	}
	doc, err := load(opts)
	if err == nil {
		settings, err = parseOptions(opts.Options)
	}
	if err == nil {
		explanations, err = newExplanations(doc, opts)
	}
	return explanations, err == nil && doc.Clusters != nil && opts.Cluster == "", settings, err
}

func parseOptions(optionList []string) (topology.Settings, error) {
	values := make(url.Values)
	for _, option := range optionList {
		name, value, ok := strings.Cut(option, "=")
		if !ok {
			return topology.Settings{}, fmt.Errorf("--option %.100q: want NAME=VALUE, such as warmStandby=1", option)
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

// write formats all results, and then writes them in a single call. asList means that they are
// printed as a list.
func write(explanations []*explanation, asList bool, opts Options) error {
	var text bytes.Buffer
	if opts.JSON {
		var value any = explanations[0].result
		if asList {
			results := Results{Clusters: []*Result{}}
			for _, s := range explanations {
				results.Clusters = append(results.Clusters, s.result)
			}
			value = results
		}
		if err := printJSON(&text, value); err != nil {
			return err
		}
	} else {
		for i, s := range explanations {
			if i > 0 {
				fmt.Fprintln(&text)
			}
			s.result.printTable(&text, table.PainterFor(opts.Out))
		}
	}
	_, err := opts.Out.Write(text.Bytes())
	return err
}

func (r *Result) computeShares(s *simulation) {
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
func (r *Result) owners() map[mechanismAddress]*Endpoint {
	owners := make(map[mechanismAddress]*Endpoint)
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		if e.LocalityWeight == 0 {
			continue // an endpoint that gets no calls must not own the address of another endpoint
		}
		for _, address := range e.addresses() {
			key := mechanismAddress{e.mechanism, address}
			if first, taken := owners[key]; !taken || first.Health != "" && e.Health == "" {
				owners[key] = e
			}
		}
	}
	return owners
}
