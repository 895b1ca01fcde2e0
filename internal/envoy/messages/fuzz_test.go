package messages

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// FuzzRead checks that Read returns either problems or a valid answer. If the answer is converted
// to a cluster with Write, Read must return the same answer again.
func FuzzRead(f *testing.F) {
	for _, c := range []*endpointv3.ClusterLoadAssignment{
		cluster(withWeight(3, newLocality(0, "us/a", "10.0.0.1*5", "10.0.0.2")), newLocality(1, "eu", "::1"), newLocality(1, "as", "host")),
		cluster(newLocality(0, "us", "a*0", "a"), withoutWeight(newLocality(3, "eu", "b"))),
		cluster(newLocality(0, strings.Repeat("z", 3000), "a"), newLocality(0, strings.Repeat("z", 3000), "b")),
		cluster(newLocality(129, "us"), &endpointv3.LocalityLbEndpoints{LbEndpoints: []*endpointv3.LbEndpoint{nil}}),
	} {
		wire, err := proto.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		c := &endpointv3.ClusterLoadAssignment{}
		if proto.Unmarshal(wire, c) != nil {
			return
		}
		var translator topology.Translator
		tree, err := readAndTranslate(&translator, c)
		if err != nil {
			invalid, ok := errors.AsType[*Invalid](err)
			if !ok || len(invalid.Problems) == 0 || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("error = %q, want an *Invalid in one line", err)
			}
			if ok {
				checkLengths(t, invalid.Problems)
			}
			return
		}
		repeated, err := readAndTranslate(&translator, c)
		if err != nil || lbtest.JSON(configOf(repeated.Tree)) != lbtest.JSON(configOf(tree.Tree)) {
			t.Errorf("the same cluster became %s, then %s, %v", lbtest.JSON(configOf(tree.Tree)), lbtest.JSON(configOf(repeated.Tree)), err)
		}
		answer, notes, _ := Read(c)
		checkLengths(t, notes)
		checked, err := topology.Check(&answer, nil)
		if err != nil {
			t.Fatal(err)
		}
		written, _, err := Write(c.GetClusterName(), checked)
		if err != nil {
			t.Fatalf("what Read has read cannot be written: %v", err)
		}
		reread, err := readAndTranslate(new(topology.Translator), written)
		first, _ := readAndTranslate(new(topology.Translator), c)
		if err != nil || lbtest.JSON(configOf(reread.Tree)) != lbtest.JSON(configOf(first.Tree)) || !reflect.DeepEqual(reread.Endpoints, first.Endpoints) {
			t.Errorf("the cluster became %s, but %s, %v after Write and Read: %v", lbtest.JSON(configOf(first.Tree)), lbtest.JSON(configOf(reread.Tree)), err, written)
		}
	})
}

// checkLengths checks that the texts of problems are short even if the input has long names.
func checkLengths(t *testing.T, problems []Problem) {
	t.Helper()
	for _, p := range problems {
		if len(p.Text) > MaxText+100 {
			t.Errorf("a text has %d bytes: %.1000q", len(p.Text), p.Text)
		}
	}
}
