package file

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	yaml "go.yaml.in/yaml/v3"

	"github.com/understudy-lb/understudy/topology"
)

// document is the content of a file, well-formed but for the rules of a cluster,
// which are those of package topology.
type document struct {
	path     string
	root     *yaml.Node
	cluster  *endpointv3.ClusterLoadAssignment
	clusters []*clusterv3.Cluster // in its place, if not nil
}

// parse returns the cluster or the clusters in data. What a file may leave out is filled
// in. Its error is an *Error.
func parse(path string, data []byte) (*document, error) {
	root, err := parseYAML(path, data)
	if err != nil {
		return nil, err
	}
	d := decoder{problems: &Error{Path: path}}
	if _, list := entry(root, "clusters"); list != nil {
		clusters := d.clusters(root)
		return &document{path: path, root: root, clusters: clusters}, d.problems.err()
	}
	cluster := &endpointv3.ClusterLoadAssignment{}
	d.message(root, cluster.ProtoReflect())
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	complete(cluster, strings.ToValidUTF8(nameOf(path), "\uFFFD")) // a path may be any bytes
	return &document{path: path, root: root, cluster: cluster}, nil
}

// parseYAML returns the one value in data. JSON is YAML.
func parseYAML(path string, data []byte) (*yaml.Node, error) {
	problems := &Error{Path: path}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil && !errors.Is(err, io.EOF) {
		return nil, syntaxError(path, data, err)
	}
	if first.Kind != yaml.DocumentNode || isNull(first.Content[0]) {
		problems.add(1, 1, `the file is empty, want a ClusterLoadAssignment, or clusters (without any endpoints: "endpoints: []")`)
		return nil, problems.err()
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		problems.add(second.Line, second.Column, "a second document begins here, want one document in a file")
		return nil, problems.err()
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(path, data, err)
	}
	return first.Content[0], nil
}

// explain returns err, which Translate returned for the document's cluster, with the
// places in the file.
func (d *document) explain(err error) error {
	invalid, ok := errors.AsType[*topology.Invalid](err)
	if !ok {
		return err
	}
	located := &Error{Path: d.path, More: invalid.More}
	for _, p := range invalid.Problems {
		line, column := d.locate(p.Path)
		located.add(line, column, "%s", p.Text)
	}
	return located.err()
}

// nameOf returns the name of the file at path without its extension.
func nameOf(path string) string {
	base := filepath.Base(path)
	if name := strings.TrimSuffix(base, filepath.Ext(base)); name != "" {
		return name
	}
	return base
}
