package clusterfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
)

// FuzzParse checks that a file is either rejected with a list of problems, or has endpoints that
// can be translated and encoded, or a list of clusters.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(list(aggregate("all", "all, a, b, nowhere"), static("a", "10.0.0.1"), "- {name: b, type: ORIGINAL_DST, circuit_breakers: {}}\n")))
	f.Add([]byte(fromEnvoy))
	f.Add([]byte(`{"endpoints": [{"lbEndpoints": []}]}`))
	f.Add([]byte(`{"clusters": [{"name": "a\nb", "type": "EDS"}, {"name": "` + strings.Repeat("c", 3000) + `", "type": "EDS"}]}`))
	f.Add([]byte(`{"endpoints": [{"lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "` + strings.Repeat("1.", 2000) + `", "portValue": 1}}}}]}]}`))
	seeds, err := filepath.Glob("testdata/problems/*.txt")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, path := range seeds {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, scenario := range strings.Split(string(data), "load\n")[1:] {
			input, _, _ := strings.Cut(scenario, "----\n")
			f.Add([]byte(input))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		doc, d, err := parse("endpoints.yaml", data)
		if err != nil {
			checkError(t, err)
			return
		}
		if doc.Clusters != nil {
			checkClusters(t, doc)
			checkUnread(t, d, doc)
			return
		}
		known := doc.Find(doc.Names()[0])
		if err := cmp.Or(known.Err, known.NoEndpoints); err != nil {
			checkError(t, err)
			return
		}
		tree, err := new(topology.Translator).Translate(&known.Cluster.Answer)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range tree.Endpoints {
			if len(hierarchy.Path(e)) != 2 || e.Addresses[0].Addr == "" {
				t.Errorf("endpoint %v has the path %q", e, hierarchy.Path(e))
			}
		}
		encoded, err := protojson.Marshal(doc.Endpoints)
		if err != nil {
			return // the metadata contains a value that JSON cannot represent, such as NaN
		}
		reparsed, err := Parse("endpoints.yaml", encoded)
		if err != nil || !proto.Equal(reparsed.Endpoints, doc.Endpoints) {
			t.Errorf("%s became %v, %v\nwant %v", encoded, reparsed, err, doc.Endpoints)
		}
		checkUnread(t, d, doc)
	})
}

func checkClusters(t *testing.T, doc *Document) {
	if _, err := doc.check(); err != nil {
		checkError(t, err)
	}
	if _, err := doc.Choose(""); err != nil && (strings.ContainsAny(err.Error(), "\n\r\x00") || len(err.Error()) > 3000) {
		t.Errorf("error %.4000q is not a short line", err)
	}
	for _, c := range doc.Clusters {
		g := doc.Resolve(c.GetName())
		for _, e := range g.List {
			if e.Err != nil && strings.ContainsAny(e.Err.Error(), "\n\r\x00") {
				t.Errorf("error %q is not one line", e.Err)
			}
		}
		if g.Notes != nil {
			checkError(t, g.Notes)
		}
	}
}

// checkUnread checks that all Anys that are not read are left out, but no endpoint.
func checkUnread(t *testing.T, d *decoder, doc *Document) {
	before := countEndpoints(doc)
	d.leavesOut = true
	d.decode(doc)
	if notes := d.notes.Err(); notes != nil {
		checkError(t, notes)
	}
	if after := countEndpoints(doc); after != before || d.problems.Err() != nil {
		t.Errorf("%d of %d endpoints are left; %v", after, before, d.problems.Err())
	}
	all := []proto.Message{doc.Endpoints}
	for _, c := range doc.Clusters {
		all = append(all, c)
	}
	for _, m := range all {
		err := protorange.Range(m.ProtoReflect(), func(v protopath.Values) error {
			if m, ok := v.Index(-1).Value.Interface().(protoreflect.Message); ok {
				if packed, ok := m.Interface().(*anypb.Any); ok && cds.ReadType(packed.GetTypeUrl()) == nil {
					return fmt.Errorf("%v", v.Path)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%v is left", err)
		}
	}
}

func countEndpoints(doc *Document) (n int) {
	all := []*endpointv3.ClusterLoadAssignment{doc.Endpoints}
	for _, c := range doc.Clusters {
		all = append(all, c.GetLoadAssignment())
	}
	for _, a := range all {
		for _, l := range a.GetEndpoints() {
			n += len(l.GetLbEndpoints())
		}
	}
	return n
}

func checkError(t *testing.T, err error) {
	problems, ok := errors.AsType[*messages.Invalid](err)
	if !ok || len(problems.Problems) == 0 {
		t.Fatalf("error %v is not a list of problems", err)
	}
	if strings.ContainsAny(err.Error(), "\n\r\x00") {
		t.Errorf("error %q is not one line", err)
	}
	for _, p := range problems.Problems {
		if p.At.Line < 1 || p.At.Column < 1 || p.Text == "" || len(p.Text) > messages.MaxText+100 {
			t.Errorf("problem %+v has no position, no text or a long one", p)
		}
	}
}
