// Package explain says what the policies make of an endpoints file: which endpoint
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

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	_ "github.com/understudy-lb/understudy" // the policies that trees are made of
	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/file"
	"github.com/understudy-lb/understudy/topology"
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
	// File is the path of the endpoints file, or "-" for In.
	File string
	// Down names what is down: an address, a locality, or "priority:N".
	Down []string
	// Options are those of a channel, NAME=VALUE as in the query of a target.
	Options []string
	// JSON prints the result as JSON, and no table.
	JSON bool
	// In is standard input, Out where the result goes.
	In  io.Reader
	Out io.Writer
}

// Run explains a file. Its errors are of the input, but for ErrNoEndpoint, an
// *OutputError, and ctx's.
func Run(ctx context.Context, opts Options) error {
	cluster, err := load(opts)
	if err != nil {
		return err
	}
	settings, err := parseOptions(opts.Options)
	if err != nil {
		return err
	}
	tree, err := new(topology.Translator).Translate(cluster)
	if err != nil {
		return fmt.Errorf("%s: %w", opts.File, err)
	}
	result := newResult(cluster, tree.Notes)
	result.Options = append(result.Options, opts.Options...)
	if err := result.takeDown(opts.Down); err != nil {
		return err
	}
	if err := result.measure(ctx, topology.Join(settings, tree)); err != nil {
		return err
	}
	if err := result.addTiers(ctx, cluster, settings); err != nil {
		return err
	}
	if err := result.print(opts); err != nil {
		return &OutputError{err}
	}
	if result.Priority == nil {
		return ErrNoEndpoint
	}
	return nil
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
	settings, err := discovery.ParseSettings(values)
	if err != nil {
		return topology.Settings{}, fmt.Errorf("--option: %w", err)
	}
	return settings, nil
}

func load(opts Options) (*endpointv3.ClusterLoadAssignment, error) {
	if opts.File == stdin {
		return file.LoadFrom(opts.In, stdinName)
	}
	return file.Load(opts.File)
}

// print writes the result, all at once.
func (r *Result) print(opts Options) error {
	var text bytes.Buffer
	if opts.JSON {
		if err := r.printJSON(&text); err != nil {
			return err
		}
	} else {
		r.printTable(&text, table.PainterFor(opts.Out))
	}
	_, err := opts.Out.Write(text.Bytes())
	return err
}

// measure tries calls on the tree's policies, and notes each endpoint's share.
func (r *Result) measure(ctx context.Context, tree topology.Tree) error {
	owner := r.owners()
	counted, err := countPicks(ctx, tree, func(address string) bool { return owner[address].isDown(address) })
	if err != nil {
		return err
	}
	if counted.err != nil {
		r.Error = counted.err.Error()
	}
	r.Dropped = float64(counted.dropped) / picks
	for address, n := range counted.byAddress {
		e := owner[address]
		e.Share += float64(n) / picks
		if r.Priority == nil || e.Priority < *r.Priority {
			r.Priority = &e.Priority
		}
	}
	return nil
}

// owners returns the endpoint of each address.
func (r *Result) owners() map[string]*Endpoint {
	owner := make(map[string]*Endpoint)
	for i := range r.Endpoints {
		if r.Endpoints[i].LocalityWeight == 0 {
			continue // without traffic, it may have the addresses of another
		}
		for _, address := range r.Endpoints[i].addresses() {
			owner[address] = &r.Endpoints[i]
		}
	}
	return owner
}
