package file

import (
	"fmt"
	"io"
	"runtime"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/discovery/internal/cds"
	"github.com/understudy-lb/understudy/internal/core/clusters"
)

// Document is what is in a file.
type Document struct {
	// Endpoints are those of the one cluster, nil where the file lists clusters.
	Endpoints *endpointv3.ClusterLoadAssignment
	// Clusters are those in the list.
	Clusters []*clusterv3.Cluster

	read *document
}

// LoadDocument is Load for a file that may list clusters, all of which must be good, as a
// control plane wants it that serves them: a channel can do without some. What a cluster
// names may be somewhere else.
func LoadDocument(path string) (*Document, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return loadDocument(path, data)
}

// LoadDocumentFrom is LoadDocument for the content of r, as LoadFrom is Load.
func LoadDocumentFrom(r io.Reader, name string) (*Document, error) {
	data, err := readAll(r, name)
	if err != nil {
		return nil, err
	}
	return loadDocument(name, data)
}

func loadDocument(path string, data []byte) (*Document, error) {
	doc, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	if doc.clusters == nil {
		cluster, err := load(path, data)
		return &Document{Endpoints: cluster}, err
	}
	if err := doc.checkClusters(); err != nil {
		return nil, err
	}
	return &Document{Clusters: doc.clusters, read: doc}, nil
}

// ValidateCluster returns what is wrong with a cluster by itself, in one line.
func ValidateCluster(c *clusterv3.Cluster) error {
	_, err := cds.Read(c)
	return err
}

// checkClusters returns an error with the places of all that is wrong with the clusters:
// each by itself, and what they name of one another.
func (d *document) checkClusters() error {
	defer runtime.KeepAlive(d.root()) // which every place needs
	problems := &Error{Path: d.path}
	children := make(map[string][]string)
	for i, c := range d.clusters {
		read, err := cds.Read(c)
		if err == nil {
			children[c.GetName()] = read.Children
			continue
		}
		if located, ok := d.explainWithin(fmt.Sprintf("clusters[%d]", i), err).(*Error); ok { //nolint:errorlint // it is never wrapped
			problems.Problems, problems.More = append(problems.Problems, located.Problems...), problems.More+located.More
		}
	}
	seen := make(map[string]bool) // places
	for _, c := range d.clusters {
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
