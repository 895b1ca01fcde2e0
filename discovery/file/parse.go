package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"weak"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	yaml "go.yaml.in/yaml/v3"

	"github.com/understudy-lb/understudy/discovery/internal/cds"
	"github.com/understudy-lb/understudy/internal/feed"
	"github.com/understudy-lb/understudy/topology"
)

// document is the content of a file, well-formed but for the rules of a cluster,
// which are those of package topology.
type document struct {
	path     string
	cluster  *endpointv3.ClusterLoadAssignment
	clusters []*clusterv3.Cluster // in its place, if not nil
	index    map[string]int       // of clusters, by name

	// The nodes take forty times the memory of the content. They are needed for places alone,
	// and made again where they have gone.
	content []byte
	nodes   weak.Pointer[yaml.Node]

	mu        sync.Mutex
	read      map[string]cds.Known // clusters, by name
	explained map[string]error     // by what was explained
}

// newDocument returns the document of a content, with what was decoded of its nodes.
func newDocument(path string, content []byte, nodes *yaml.Node) *document {
	return &document{path: path, content: content, nodes: weak.Make(nodes), read: make(map[string]cds.Known), explained: make(map[string]error)}
}

// root returns the nodes.
func (d *document) root() *yaml.Node {
	if nodes := d.nodes.Value(); nodes != nil {
		return nodes
	}
	nodes, err := parseYAML(d.path, d.content)
	if err != nil { // it was parsed before
		return new(yaml.Node)
	}
	return nodes
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
		doc := newDocument(path, data, root)
		doc.clusters, doc.index = d.clusters(root), make(map[string]int)
		for i, c := range doc.clusters {
			doc.index[c.GetName()] = i
			if assignment := c.GetLoadAssignment(); assignment != nil {
				feed.Share(assignment)
			}
		}
		return doc, d.problems.err()
	}
	cluster := &endpointv3.ClusterLoadAssignment{}
	d.message(root, cluster.ProtoReflect())
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	complete(cluster, strings.ToValidUTF8(nameOf(path), "\uFFFD")) // a path may be any bytes
	feed.Share(cluster)
	doc := newDocument(path, data, root)
	doc.cluster = cluster
	if problem := cds.NameProblem(cluster.GetClusterName()); problem != "" {
		return nil, doc.explain(&topology.Invalid{Problems: []topology.Problem{{Path: "cluster_name", Text: problem}}})
	}
	return doc, nil
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
	return d.explainInvalid(invalid)
}

// explainInvalid is explain. It is safe for concurrent use: many channels ask for the same.
func (d *document) explainInvalid(invalid *topology.Invalid) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := fmt.Sprint(invalid.Problems, invalid.More)
	if err, ok := d.explained[key]; ok {
		return err
	}
	root := d.root()
	located := &Error{Path: d.path, More: invalid.More}
	for _, p := range invalid.Problems {
		line, column := locate(root, p.Path)
		located.add(line, column, "%s", p.Text)
	}
	if len(d.explained) == topology.MaxProblems { // what is wrong with addresses of names may be new each time
		clear(d.explained)
	}
	d.explained[key] = located.err()
	return d.explained[key]
}

// nameOf returns the name of the file at path without its extension.
func nameOf(path string) string {
	base := filepath.Base(path)
	if name := strings.TrimSuffix(base, filepath.Ext(base)); name != "" {
		return name
	}
	return base
}
