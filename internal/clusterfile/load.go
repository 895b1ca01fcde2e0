// Package clusterfile reads files of endpoints or clusters, and says where in the file its
// mistakes are. Package discovery/file documents what may be in them.
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
	"github.com/understudy-lb/understudy/internal/envoy"
)

// MaxSize is the largest size of a file in bytes: 16 MiB, enough for about 100,000
// endpoints in YAML.
const MaxSize = 16 << 20

// Load reads and checks the file at path by all rules of a cluster. It returns what a file
// may leave out filled in, so that it may be served to other clients as it is. Of a list all
// clusters must be good, as a control plane wants it that serves them: a channel can do
// without some. What a cluster names may be somewhere else.
//
// The error names the file. For mistakes inside the file it is an *Error with all the places.
// Load is safe for concurrent use.
func Load(path string) (*Document, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return load(path, data)
}

// LoadFrom is Load for the content of r, which it reads to its end. The name stands for
// the path in errors, and names the cluster where the content does not.
func LoadFrom(r io.Reader, name string) (*Document, error) {
	data, err := readAll(r, name)
	if err != nil {
		return nil, err
	}
	return load(name, data)
}

func load(path string, data []byte) (*Document, error) {
	doc, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	if doc.Clusters != nil {
		err = doc.checkClusters()
	} else {
		err = doc.placed(envoy.Validate(doc.Endpoints))
	}
	if err != nil {
		return nil, err
	}
	return doc, nil
}

// Read returns the content of the file at path. It looks before it opens, because
// to open a pipe waits for a writer, and never reads more than MaxSize.
func Read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, Reason(err))
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory, want a file of endpoints", path)
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

// Reason returns err without the path that package os puts into it.
func Reason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// checkClusters returns an error with the places of all that is wrong with the clusters:
// each by itself, and what they name of one another.
func (d *Document) checkClusters() error {
	defer runtime.KeepAlive(d.root()) // which every place needs
	problems := &Error{Path: d.path}
	children := make(map[string][]string)
	for _, c := range d.Clusters {
		known := d.Find(c.GetName())
		if located, ok := errors.AsType[*Error](known.Err); ok {
			problems.Problems, problems.More = append(problems.Problems, located.Problems...), problems.More+located.More
		} else if known.Cluster != nil {
			children[c.GetName()] = known.Cluster.Children
		}
	}
	seen := make(map[string]bool) // places
	for _, c := range d.Clusters {
		list, _ := clusters.Resolve(c.GetName(), func(name string) clusters.Cluster { return clusters.Cluster{Children: children[name]} })
		for _, e := range list {
			if e.Err == nil {
				continue
			}
			if line, column, ok := d.placeOfReference(e); ok && !seen[fmt.Sprint(line, ":", column)] {
				seen[fmt.Sprint(line, ":", column)] = true
				problems.add(line, column, "%v", e.Err)
			}
		}
	}
	return problems.err()
}

// complete fills in what a file may leave out and a control plane may not: the
// cluster's name, which becomes the one given; the locality, which becomes one
// of which nothing is known; and the localities' weights, which become 1 in each
// priority where none is given.
func complete(cluster *endpointv3.ClusterLoadAssignment, name string) {
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
