// Package clusterfile reads files of endpoints or clusters and reports the positions of mistakes.
// See package discovery/file for the format.
package clusterfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// MaxSize is the maximum size of a file in bytes. 16 MiB of YAML is about 100,000 endpoints.
const MaxSize = 16 << 20

// Load reads and validates the file at path. It also sets defaults, so that a control plane can
// serve the result to clients. If there's a list of clusters, all of them must be valid.
//
// Errors include the path. If it's the content that's invalid, the error is a *messages.Invalid.
func Load(path string) (*Document, error) {
	data, err := Read(path)
	doc, _, empty, err := load(path, data, err)
	return doc, cmp.Or(err, empty)
}

// LoadFrom is like Load, but reads from r. Errors include name instead of a path, and the cluster
// is called name if the file doesn't say otherwise.
func LoadFrom(r io.Reader, name string) (*Document, error) {
	data, err := readAll(r, name)
	doc, _, empty, err := load(name, data, err)
	return doc, cmp.Or(err, empty)
}

// LoadEach is like Load, but a cluster that doesn't list any endpoints doesn't make the others
// invalid. Its error is returned as empty. We also strip everything that we don't read from the
// messages, and notes says what that was.
func LoadEach(path string) (doc *Document, empty, notes, err error) {
	data, err := Read(path)
	doc, d, empty, err := load(path, data, err)
	if err != nil {
		return nil, nil, nil, err
	}
	d.leavesOut = true
	d.decode(doc)
	return doc, empty, d.notes.Err(), nil
}

func load(path string, data []byte, err error) (doc *Document, d *decoder, empty, _ error) {
	if err == nil {
		doc, d, err = parse(path, data)
	}
	if err == nil {
		empty, err = doc.check()
	}
	return doc, d, empty, err
}

// check returns two errors: one for clusters without endpoints, and one for clusters that are
// invalid in any other way.
func (d *Document) check() (empty, err error) {
	var invalid, noEndpoints messages.Invalid
	seen := make(map[messages.Position]bool)
	for _, name := range d.names {
		invalid.Merge("", d.clusters[name].Err)
		noEndpoints.Merge("", d.clusters[name].NoEndpoints)
		for _, e := range cds.Resolve(name, d.Find).List {
			// If it's missing, it may be in another file. If it's invalid, we've already reported
			// it.
			known, ok := d.clusters[e.Name]
			if at := d.references[reference{e.Parent, e.Name}]; ok && e.Err != nil && known.Err == nil && !seen[at] {
				seen[at] = true
				invalid.AddAt(at, "%v", e.Err)
			}
		}
	}
	if invalid.Err() != nil {
		invalid.Merge("", &noEndpoints)
	}
	return noEndpoints.Err(), invalid.Err()
}

// Read returns the content of the file at path, which must not exceed MaxSize. It refuses to read
// pipes, because opening one would block until there's a writer.
func Read(path string) (data []byte, err error) {
	defer func() {
		if e, ok := errors.AsType[*os.PathError](err); ok { // it says which call failed, but nobody cares
			err = fmt.Errorf("%s: %w", path, e.Err)
		}
	}()
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory, want an endpoints file", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAll(f, path)
}

func readAll(r io.Reader, path string) ([]byte, error) {
	limited := &io.LimitedReader{R: r, N: MaxSize + 1}
	data, err := io.ReadAll(limited)
	if limited.N == 0 {
		return nil, fmt.Errorf("%s: has more than %d bytes (16 MiB)", path, MaxSize)
	}
	return data, err
}

// Document is the content of a well-formed file. It must not be modified.
type Document struct {
	// Endpoints is nil if the file has a list of clusters.
	Endpoints *endpointv3.ClusterLoadAssignment
	// Clusters is nil if the file has no list of clusters.
	Clusters []*clusterv3.Cluster

	path     string
	names    []string             // same order as in the file
	clusters map[string]cds.Known // errors and notes have positions

	references map[reference]messages.Position
}

type reference struct{ parent, child string } // child is named by the aggregate parent

// Names returns the names of the clusters, in the order of the file.
func (d *Document) Names() []string { return d.names }

// Choose returns the name of the cluster to use. requested is the one named in the target, or "" if
// there is none.
func (d *Document) Choose(requested string) (string, error) {
	switch _, ok := d.clusters[requested]; {
	case requested == "" && len(d.names) == 1:
		return d.names[0], nil
	case requested == "":
		return "", fmt.Errorf("%s: holds %d clusters, %s: want one of them in the target, as in ?cluster=%s", d.path, len(d.names), d.quotedNames(), printable.Line(url.QueryEscape(d.names[0]), maxShown))
	case !ok:
		return "", fmt.Errorf("%s: cluster %s: %w", d.path, printable.Quote(requested), d.Find(requested).Err)
	}
	return requested, nil
}

func (d *Document) quotedNames() string {
	return printable.Line(`"`+strings.Join(d.names, `", "`)+`"`, messages.MaxText)
}

// Find returns the state of a cluster. The result is shared by all callers.
func (d *Document) Find(name string) cds.Known {
	if known, ok := d.clusters[name]; ok {
		return known
	}
	return cds.Known{Err: fmt.Errorf("the file has no such cluster, want one of %s", d.quotedNames())}
}

// Resolve returns the discovery mechanisms of a cluster in the file. Its errors and notes say where
// in the file they are.
func (d *Document) Resolve(name string) *cds.Graph {
	g := cds.Resolve(name, d.Find)
	for i, e := range g.List {
		if at, ok := d.references[reference{e.Parent, e.Name}]; ok && e.Err != nil && d.clusters[e.Name].Err == nil {
			g.List[i].Err = fmt.Errorf("%s:%d:%d: %w", d.path, at.Line, at.Column, e.Err)
		}
	}
	return g
}
