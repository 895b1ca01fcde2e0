package clusterfile

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

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// Document is the content of a well-formed file. Load also validates it by the rules of package
// envoy. It is safe for concurrent use.
type Document struct {
	// Endpoints is nil if the file contains a list of clusters.
	Endpoints *endpointv3.ClusterLoadAssignment
	// Answer converts Endpoints to an answer, with positions in notes and errors. All callers get the
	// same answer. The function is nil if Endpoints is nil.
	Answer func() (discovery.Answer, error)
	// Clusters is nil if the file contains no list of clusters.
	Clusters []*clusterv3.Cluster

	path      string
	index     map[string]int
	hasUnread bool // some Any has a type that we do not read

	// content and nodes are two forms of the file. The YAML nodes take forty times as much memory as
	// the content, but are needed only to find positions. The Document therefore holds them by a weak
	// pointer, and parses the content again when necessary.
	content []byte
	nodes   weak.Pointer[yaml.Node]

	mu        sync.Mutex
	parsed    map[string]cds.Known
	explained map[string]error
}

func (d *Document) root() *yaml.Node {
	if nodes := d.nodes.Value(); nodes != nil {
		return nodes
	}
	nodes, err := parseYAML(d.path, d.content)
	if err != nil { // unreachable, because Parse has parsed the same content
		return new(yaml.Node)
	}
	return nodes
}

// Parse decodes the cluster or clusters in data. Its error is an *Error.
func Parse(path string, data []byte) (*Document, error) {
	root, err := parseYAML(path, data)
	if err != nil {
		return nil, err
	}
	d := decoder{problems: &Error{Path: path}}
	doc := &Document{path: path, content: data, nodes: weak.Make(root), parsed: make(map[string]cds.Known), explained: make(map[string]error)}
	if _, list := entry(root, "clusters"); list != nil {
		doc.Clusters, doc.index = d.decodeClusters(root), make(map[string]int)
		for i, c := range doc.Clusters {
			doc.index[c.GetName()] = i
		}
		doc.hasUnread = d.hasUnread
		return doc, d.problems.err()
	}
	cluster := &endpointv3.ClusterLoadAssignment{}
	d.message(root, cluster.ProtoReflect())
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	setDefaults(cluster, strings.ToValidUTF8(NameOf(path), "\uFFFD")) // a path need not be valid UTF-8
	doc.Endpoints, doc.hasUnread = cluster, d.hasUnread
	doc.Answer = sync.OnceValues(func() (discovery.Answer, error) {
		answer, notes, err := messages.Read(cluster)
		answer.Notes = messages.Texts(notes, doc.Explain)
		if err == nil {
			err = doc.checkNotEmpty("endpoints", cluster)
		}
		return answer, doc.withPositions(err)
	})
	if problem := cds.NameProblem(cluster.GetClusterName()); problem != "" {
		return nil, doc.withPositions(&messages.Invalid{Problems: []messages.Problem{{Path: "cluster_name", Text: problem}}})
	}
	return doc, nil
}

// parseYAML returns the nodes of a file, without the wrappers of files for Envoy.
func parseYAML(path string, data []byte) (*yaml.Node, error) {
	problems := &Error{Path: path}
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := documents.Decode(&first); err != nil && !errors.Is(err, io.EOF) {
		return nil, syntaxError(path, data, err)
	}
	if first.Kind != yaml.DocumentNode || isNull(first.Content[0]) {
		problems.add(1, 1, `the file is empty, want a ClusterLoadAssignment, or clusters`)
		return nil, problems.err()
	}
	switch err := documents.Decode(&second); {
	case err == nil:
		problems.add(second.Line, second.Column, "a second document begins here, want one document in a file")
		return nil, problems.err()
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(path, data, err)
	}
	return (&decoder{problems: problems}).unwrap(first.Content[0]), problems.err()
}

// withPositions adds positions to the problems of an *messages.Invalid. It returns other errors
// unchanged.
func (d *Document) withPositions(err error) error {
	invalid, ok := errors.AsType[*messages.Invalid](err)
	if !ok {
		return err
	}
	return d.Explain(invalid)
}

// Explain adds positions to problems. It caches the result, because many channels may need it.
func (d *Document) Explain(invalid *messages.Invalid) error {
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
	// The cache is limited, because problems with addresses from DNS may be different each time.
	if len(d.explained) == messages.MaxProblems {
		clear(d.explained)
	}
	d.explained[key] = located.err()
	return d.explained[key]
}

// NameOf returns the name of the file at path without its extension.
func NameOf(path string) string {
	base := filepath.Base(path)
	if name := strings.TrimSuffix(base, filepath.Ext(base)); name != "" {
		return name
	}
	return base
}
