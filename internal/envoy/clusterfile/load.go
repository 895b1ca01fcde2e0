// Package clusterfile reads files of endpoints or clusters and reports the positions of mistakes.
// Package discovery/file documents the format.
package clusterfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/internal/core/clusters"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// MaxSize is the maximum size of a file in bytes. 16 MiB of YAML holds about 100,000 endpoints.
const MaxSize = 16 << 20

// Load reads and validates the file at path. It sets defaults, so that a control plane can serve
// the result to clients. If the file contains a list of clusters, all of them must be valid.
//
// Errors contain the path. If the content is invalid, the error is an *Error. Load is safe for
// concurrent use.
func Load(path string) (*Document, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return load(path, data)
}

// LoadFrom is like Load, but reads from r. Errors contain name instead of a path, and name is also
// the default name of the cluster.
func LoadFrom(r io.Reader, name string) (*Document, error) {
	data, err := readAll(r, name)
	if err != nil {
		return nil, err
	}
	return load(name, data)
}

func load(path string, data []byte) (*Document, error) {
	doc, empty, err := parseAndCheck(path, data)
	if err == nil && empty != nil {
		err = empty.Err
	}
	if err != nil {
		return nil, err
	}
	return doc, nil
}

// Empty has the clusters of a file that list no endpoint.
type Empty struct {
	Clusters []string
	Err      *Error
}

func (e *Empty) add(cluster string, err error) {
	if located, ok := errors.AsType[*Error](err); ok {
		e.Clusters = append(e.Clusters, cluster)
		e.Err.merge(located)
	}
}

// LoadEach is like Load, but a cluster that lists no endpoint does not make the others invalid. If
// there are such clusters, empty is not nil.
func LoadEach(path string) (doc *Document, empty *Empty, err error) {
	data, err := Read(path)
	if err != nil {
		return nil, nil, err
	}
	return parseAndCheck(path, data)
}

func parseAndCheck(path string, data []byte) (*Document, *Empty, error) {
	doc, err := Parse(path, data)
	if err != nil {
		return nil, nil, err
	}
	empty := &Empty{Err: &Error{Path: path}}
	if doc.Clusters == nil {
		err = doc.withPositions(messages.Validate(doc.Endpoints))
		empty.add(doc.Endpoints.GetClusterName(), doc.checkNotEmpty("endpoints", doc.Endpoints))
	} else {
		err = doc.checkClusters(empty)
	}
	if err != nil {
		return nil, nil, err
	}
	if empty.Clusters == nil {
		empty = nil
	}
	return doc, empty, nil
}

// checkNotEmpty returns an error if an assignment in a file lists no endpoint at all. Whoever
// generates such a file has usually lost the list. A management server may send an empty assignment,
// because EDS defines it; a file needs none, because its endpoints can be DRAINING.
func (d *Document) checkNotEmpty(path string, cluster *endpointv3.ClusterLoadAssignment) error {
	for _, locality := range cluster.GetEndpoints() {
		if len(locality.GetLbEndpoints()) > 0 {
			return nil
		}
	}
	problem := messages.Problem{Path: path, Text: "no endpoint is listed, want at least one (to take all out of use, set their health_status to DRAINING)"}
	return d.withPositions(&messages.Invalid{Problems: []messages.Problem{problem}})
}

// Read returns the content of the file at path, which must not exceed MaxSize. It returns an error
// for a pipe, because opening a pipe would block until there is a writer.
func Read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, Reason(err))
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory, want an endpoints file", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a regular file", path)
	case info.Size() > MaxSize:
		return nil, tooLarge(path, info.Size())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, Reason(err))
	}
	defer func() { _ = f.Close() }()
	return readAll(f, path)
}

func readAll(r io.Reader, path string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, Reason(err))
	}
	if len(data) > MaxSize {
		return nil, tooLarge(path, int64(len(data)))
	}
	return data, nil
}

func tooLarge(path string, size int64) error {
	return fmt.Errorf("%s: has %d bytes or more, want at most %d (16 MiB)", path, size, MaxSize)
}

// Reason returns the cause of an error from package os. Unlike the error, the cause does not
// contain the path.
func Reason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// checkClusters returns an error if a cluster is invalid. It adds the clusters without endpoints to
// empty.
func (d *Document) checkClusters(empty *Empty) error {
	defer runtime.KeepAlive(d.root()) // d holds its nodes by a weak pointer, and the code below needs them
	problems := &Error{Path: d.path}
	children := make(map[string][]string)
	for _, c := range d.Clusters {
		known := d.Find(c.GetName())
		if located, ok := errors.AsType[*Error](known.Err); ok {
			problems.merge(located)
		} else if known.Cluster != nil {
			children[c.GetName()] = known.Cluster.Children
			empty.add(c.GetName(), known.NoEndpoints)
		}
	}
	seen := make(map[string]bool)
	for _, c := range d.Clusters {
		list, _ := clusters.Resolve(c.GetName(), func(name string) clusters.Cluster { return clusters.Cluster{Children: children[name]} })
		for _, e := range list {
			if e.Err == nil {
				continue
			}
			if line, column, ok := d.positionOfReference(e); ok && !seen[fmt.Sprint(line, ":", column)] {
				seen[fmt.Sprint(line, ":", column)] = true
				problems.add(line, column, "%v", e.Err)
			}
		}
	}
	if problems.err() != nil {
		problems.merge(empty.Err)
	}
	return problems.err()
}

// setDefaults sets fields that a file may omit but a control plane must not. If no locality of a
// priority has a weight, all localities of the priority get weight 1.
func setDefaults(cluster *endpointv3.ClusterLoadAssignment, name string) {
	if cluster.GetClusterName() == "" {
		cluster.ClusterName = name
	}
	weighted := make(map[uint32]bool)
	for _, locality := range cluster.GetEndpoints() {
		if locality.GetLoadBalancingWeight() != nil {
			weighted[locality.GetPriority()] = true
		}
	}
	for _, locality := range cluster.GetEndpoints() {
		if locality.GetLocality() == nil {
			locality.Locality = &corev3.Locality{}
		}
		if !weighted[locality.GetPriority()] {
			locality.LoadBalancingWeight = wrapperspb.UInt32(1)
		}
	}
}
