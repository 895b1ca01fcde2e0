package file

import (
	"strings"
	"testing"
)

// A control plane takes no file in which a cluster is wrong, and is told of all places.
func TestLoadDocument(t *testing.T) {
	path := newPath(t)
	write(t, path, onePort(80))
	if doc, err := LoadDocument(path); err != nil || doc.Clusters != nil || doc.Endpoints.GetClusterName() != "endpoints" {
		t.Errorf("LoadDocument = %v, %v", doc, err)
	}
	write(t, path, clustersFile(aggregate("all", "a, elsewhere"), static("a", "10.0.0.1")))
	doc, err := LoadDocument(path)
	if err != nil || len(doc.Clusters) != 2 || doc.Endpoints != nil || ValidateCluster(doc.Clusters[0]) != nil {
		t.Errorf("LoadDocument = %v, %v", doc, err)
	}
	write(t, path, clustersFile(aggregate("a", "b, c"), aggregate("b", "a"), "- {name: c, type: ORIGINAL_DST}\n", aggregate("d", "d")))
	_, err = LoadDocument(path)
	for _, want := range []string{
		path + `:7:18: cluster "b" names itself: b -> a -> b`,
		path + `:13:18: cluster "a" names itself: a -> b -> a`,
		path + `:14:19: type ORIGINAL_DST is not supported`,
		path + `:20:18: cluster "d" names itself: d -> d`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("LoadDocument = %v\nwant %q", err, want)
		}
	}
	for _, content := range []string{"clusters: []\n", "endpoints: {}\n"} {
		write(t, path, content)
		if _, err := LoadDocument(path); err == nil {
			t.Errorf("%q is taken", content)
		}
	}
	if _, err := LoadDocument(path + ".none"); err == nil {
		t.Error("a file that is not there is taken")
	}
}

// The endpoints of a cluster have its name, all of it, unless they have one of their own.
func TestPartsHaveTheNameOfTheirCluster(t *testing.T) {
	path := newPath(t)
	write(t, path, clustersFile(static("prod/shop", "10.0.0.1"), static("shop.v2", "10.0.0.2"), "- {name: named, type: STATIC, load_assignment: {cluster_name: shop-us}}\n"))
	doc, err := LoadDocument(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"shop.v2": "shop.v2", "prod/shop": "prod/shop", "named": "shop-us"} {
		parts, _, err := doc.Parts(name)
		if err != nil || len(parts) != 1 || parts[0].Endpoints.GetClusterName() != want {
			t.Errorf("the parts of cluster %s are %v, %v, want one with the cluster_name %s", name, parts, err, want)
		}
	}
}
