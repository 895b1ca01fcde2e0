package clusterfile

import (
	"os"
	"strings"
	"testing"
)

func static(name, address string) string {
	return "- name: " + name + "\n  type: STATIC\n  load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: " + address + ", port_value: 1}}}}]}]}\n"
}

func aggregate(name, children string) string {
	return "- name: " + name + "\n  cluster_type:\n    name: envoy.clusters.aggregate\n    typed_config:\n" +
		"      '@type': type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig\n      clusters: [" + children + "]\n"
}

// oneEndpoint is the smallest file that is valid.
const oneEndpoint = "endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /a}}}}]}]\n"

func list(clusters ...string) string { return "clusters:\n" + strings.Join(clusters, "") }

func rewrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoadClusters(t *testing.T) {
	path := writeFile(t, oneEndpoint)
	if doc, err := Load(path); err != nil || doc.Clusters != nil || doc.Endpoints.GetClusterName() != "endpoints" {
		t.Errorf("Load = %v, %v", doc, err)
	}
	rewrite(t, path, list(aggregate("all", "a, elsewhere"), static("a", "10.0.0.1")))
	doc, err := Load(path)
	if err != nil || len(doc.Clusters) != 2 || doc.Endpoints != nil {
		t.Errorf("Load = %v, %v", doc, err)
	}
	rewrite(t, path, list(aggregate("a", "b, c"), aggregate("b", "a"), "- {name: c, type: ORIGINAL_DST}\n", aggregate("d", "d"), aggregate("e", "d")))
	_, err = Load(path)
	for _, want := range []string{
		path + `:7:18: cluster "b" names itself: b -> a -> b`,
		path + `:13:18: cluster "a" names itself: a -> b -> a`,
		path + `:14:19: type ORIGINAL_DST is not supported`,
		path + `:20:18: cluster "d" names itself`,
	} {
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("Load = %v\nwant %q once", err, want)
		}
	}
	for _, content := range []string{"clusters: []\n", "endpoints: {}\n", "endpoints: []\n"} {
		rewrite(t, path, content)
		if _, err := Load(path); err == nil {
			t.Errorf("Load accepted %q", content)
		}
	}
	if _, err := Load(path + ".none"); err == nil {
		t.Error("Load accepted a missing file")
	}
}

// A cluster without endpoints must not make the other clusters of the file invalid.
func TestLoadEach(t *testing.T) {
	path := writeFile(t, list(aggregate("all", "a, b, c"), static("a", "10.0.0.1"), "- {name: b, type: STATIC, load_assignment: {}, outlier_detection: {interval: 5s}}\n", "- {name: c, type: STRICT_DNS, load_assignment: {endpoints: []}}\n"))
	doc, empty, _, err := LoadEach(path)
	if err != nil || empty == nil || !strings.HasPrefix(empty.Error(), path+":11:27: no endpoint is listed") || !strings.Contains(empty.Error(), path+":12:49: ") {
		t.Fatalf("LoadEach = %v, %v, want that b and c are empty", empty, err)
	}
	if a, b := doc.Find("a"), doc.Find("b"); a.NoEndpoints != nil || b.NoEndpoints == nil || b.Err != nil || b.Cluster.OutlierDetection == nil {
		t.Errorf("a is %v, b is %v, want an error for the endpoints of b alone", a, b)
	}
	rewrite(t, path, "cluster_name: shop")
	if _, empty, _, err := LoadEach(path); err != nil || empty == nil {
		t.Errorf("LoadEach = %v, %v, want that shop is empty", empty, err)
	}
	rewrite(t, path, oneEndpoint)
	if _, empty, _, err := LoadEach(path); err != nil || empty != nil {
		t.Errorf("LoadEach = %v, %v, want nothing empty", empty, err)
	}
	if _, _, _, err := LoadEach(path + ".none"); err == nil {
		t.Error("LoadEach accepted a missing file")
	}
}

// A file may have millions of unknown fields. Those beyond the limit of an error must not cost more
// than to be counted.
func TestManyUnknownFields(t *testing.T) {
	allocations := func(fields int) float64 {
		data := []byte("clusters:\n" + strings.Repeat("- x: 1\n", fields))
		return testing.AllocsPerRun(1, func() {
			if _, err := Parse("a.yaml", data); err == nil {
				t.Error("no error")
			}
		})
	}
	if perField := (allocations(4000) - allocations(2000)) / 2000; perField > 45 {
		t.Errorf("%v allocations for each unknown field, want at most 45", perField)
	}
}
