package clusterfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

func writeFile(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func endpointsIn(path string) (*endpointv3.ClusterLoadAssignment, error) {
	doc, err := Load(path)
	if err != nil {
		return nil, err
	}
	return doc.Endpoints, nil
}

func TestProblems(t *testing.T) {
	datadriven.Walk(t, "testdata/problems", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			path := writeFile(t, d.Input)
			_, err := Load(path)
			problems, ok := errors.AsType[*messages.Invalid](err)
			if !ok {
				d.Fatalf(t, "Load = %v, want a *messages.Invalid", err)
			}
			text := strings.ReplaceAll(problems.Error(), path, filepath.Base(path))
			return strings.ReplaceAll(text, "; endpoints.yaml", "\nendpoints.yaml") + "\n"
		})
	})
}

const small = `
cluster_name: checkout
endpoints:
- locality: {region: us-east, zone: a}
  load_balancing_weight: 3
  lb_endpoints:
  - endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 443}}}
    load_balancing_weight: 2
  - endpoint:
      address: {pipe: {path: /run/b.sock}}
      additional_addresses: [{address: {socket_address: {address: "2001:db8::1", port_value: 443}}}]
    health_status: HEALTHY
    metadata: {filter_metadata: {envoy.lb: {canary: true, share: 0.5, big: .inf, none: null, list: [1, a]}}}
- locality: {region: eu-west}
  priority: 1
  load_balancing_weight: "1"
  lb_endpoints: null
policy:
  endpoint_stale_after: 10s
  overprovisioning_factor: 140
  drop_overloads:
  - {category: lb, drop_percentage: {numerator: 5, denominator: TEN_THOUSAND}}
named_endpoints:
  a: {address: {pipe: {path: /a}}}
`

// Load must decode YAML to the same message as protojson decodes the equivalent JSON. Field names
// in snake case and in camel case must be accepted.
func TestLoadAgreesWithProtojson(t *testing.T) {
	got, err := endpointsIn(writeFile(t, small))
	if err != nil {
		t.Fatal(err)
	}
	want := &endpointv3.ClusterLoadAssignment{}
	err = protojson.Unmarshal([]byte(`{"clusterName": "checkout", "endpoints": [
	  {"locality": {"region": "us-east", "zone": "a"}, "loadBalancingWeight": 3, "lbEndpoints": [
	    {"endpoint": {"address": {"socketAddress": {"address": "192.0.2.1", "portValue": 443}}}, "loadBalancingWeight": 2},
	    {"endpoint": {"address": {"pipe": {"path": "/run/b.sock"}},
	      "additionalAddresses": [{"address": {"socketAddress": {"address": "2001:db8::1", "portValue": 443}}}]},
	      "healthStatus": "HEALTHY", "metadata": {"filterMetadata": {"envoy.lb": {"canary": true, "share": 0.5, "big": ".inf", "none": null, "list": [1, "a"]}}}}]},
	  {"locality": {"region": "eu-west"}, "priority": 1, "loadBalancingWeight": 1}],
	  "policy": {"endpointStaleAfter": "10s", "overprovisioningFactor": 140,
	    "dropOverloads": [{"category": "lb", "dropPercentage": {"numerator": 5, "denominator": "TEN_THOUSAND"}}]},
	  "namedEndpoints": {"a": {"address": {"pipe": {"path": "/a"}}}}}`), want)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("loaded %v\nwant   %v", got, want)
	}
	for _, options := range []protojson.MarshalOptions{{}, {UseProtoNames: true}, {Multiline: true, EmitUnpopulated: true}} {
		encoded, err := options.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := endpointsIn(writeFile(t, string(encoded))); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s\nloaded as %v, %v", encoded, got, err)
		}
	}
}

func TestOmittedFields(t *testing.T) {
	cluster, err := endpointsIn(writeFile(t, `
endpoints:
- lb_endpoints: [{endpoint: {address: {pipe: {path: /a}}}}]
- locality: {region: a}
- {locality: {region: b}, priority: 1, load_balancing_weight: 3}
- {locality: {region: c}, priority: 1}
- {priority: 1, load_balancing_weight: 0}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := cluster.GetClusterName(); got != "endpoints" {
		t.Errorf("cluster name = %q, want the file's name", got)
	}
	var weights []uint32
	for _, l := range cluster.GetEndpoints() {
		if l.GetLocality() == nil {
			t.Error("a locality is still missing")
		}
		weights = append(weights, l.GetLoadBalancingWeight().GetValue())
	}
	if want := []uint32{1, 1, 3, 0, 0}; len(weights) != 5 || [5]uint32(weights) != [5]uint32(want) {
		t.Errorf("weights = %d, want %d", weights, want)
	}
	_, notes, err := messages.Read(cluster)
	if err != nil || len(notes) != 2 {
		t.Errorf("notes = %q, %v, want two localities without traffic", notes, err)
	}
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "none.yaml: no such file or directory",
		dir:                             ": is a directory, want an endpoints file",
		os.DevNull:                      "/dev/null: is not a regular file",
	} {
		_, err := Load(path)
		if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("Load(%s) = %v, want … %s", path, err, want)
		}
	}
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load = %v, want os.ErrNotExist", err)
	}
}

func TestDeepNestingIsRejected(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", 100_000),
		"endpoints:\n- metadata: {filter_metadata: {a: {b: " + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}}}",
		strings.Repeat("{a: ", 9_000) + strings.Repeat("}", 9_000),
	} {
		if _, err := Load(writeFile(t, text)); err == nil || len(err.Error()) > 1000 {
			t.Errorf("Load of %.20s… = %v, want a short error", text, err)
		}
	}
}

func TestLoadFrom(t *testing.T) {
	doc, err := LoadFrom(strings.NewReader(oneEndpoint), "stdin")
	if err != nil || doc.Endpoints.GetClusterName() != "stdin" {
		t.Errorf("LoadFrom = %v, %v, want a cluster called stdin", doc, err)
	}
	for text, want := range map[string]string{
		"a: 1":                         "stdin:1:1: unknown field",
		strings.Repeat("@", MaxSize):   "stdin:1:1: syntax error",
		strings.Repeat("@", MaxSize+1): "stdin: has more than 16777216 bytes (16 MiB)",
	} {
		if _, err := LoadFrom(strings.NewReader(text), "stdin"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("LoadFrom(%.20s…) = %v, want %s …", text, err, want)
		}
	}
}

// The position of a mistake must be correct, however many lines precede it.
func TestPositionsInLargeFile(t *testing.T) {
	for _, mistake := range []string{
		"cluster_name: a\nendpoints: @x\n",
		"cluster_name: a\nendpoints:\n- locality: {zone: %a}\n",
		"cluster_name: a\nendpoints:\n- priority: `1\n",
		"cluster_name: \"a\\q\"\n",
	} {
		position := func(before string) (line, column int) {
			t.Helper()
			_, err := Parse("x.yaml", []byte(before+mistake))
			e, ok := errors.AsType[*messages.Invalid](err)
			if !ok {
				t.Fatalf("%q: %v, want a mistake", mistake, err)
			}
			return e.Problems[0].At.Line, e.Problems[0].At.Column
		}
		line, column := position("# x\n")
		for _, lines := range []int{7, 100, 8_000} {
			if gotLine, gotColumn := position(strings.Repeat("# x\n", lines)); gotLine != line+lines-1 || gotColumn != column {
				t.Errorf("%q after %d lines: the mistake is at %d:%d, want %d:%d", mistake, lines, gotLine, gotColumn, line+lines-1, column)
			}
		}
	}
}
