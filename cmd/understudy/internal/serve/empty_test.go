package serve

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

const emptyRejected = "rejected, its last good content is still served"

// staticClusters returns a list of clusters with these numbers of endpoints.
func staticClusters(counts map[string]int) string {
	text := "clusters:\n"
	for _, name := range []string{"a", "b", "c"} {
		n, ok := counts[name]
		if !ok {
			continue
		}
		text += "- {name: " + name + ", type: STATIC, load_assignment: {endpoints: [{lb_endpoints: ["
		for i := range n {
			text += fmt.Sprintf("{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}},", i+1)
		}
		text += "]}]}}\n"
	}
	return text
}

// A file without endpoints is usually a mistake of the program that generates it. Its last endpoints
// must still be served, even after a restart.
func TestEmptyFileKeepsCluster(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "a.yaml")
	path := filepath.Join(dir, "a.yaml")
	o := Options{Paths: []string{dir}, Cache: filepath.Join(t.TempDir(), "cache")}
	s, l := start(t, o)
	for _, content := range []string{"{}", "endpoints: []", "cluster_name: other", "endpoints: [{locality: {zone: a}}]"} {
		write(t, path, endpoints("1", "2"))
		for l.wait(t, "cluster served")["endpoints"] != 2.0 {
		}
		write(t, path, content)
		line := l.wait(t, emptyRejected)
		if problem, _ := line["error"].(string); line["level"] != "WARN" || !strings.HasPrefix(problem, path+":1:1: no endpoint is listed") || fmt.Sprint(line["clusters"]) != "[a]" {
			t.Errorf("%s: the log says %v", content, line)
		}
		expectServed(t, s, "with "+content, map[string]int{"a": 2})
		write(t, path, endpoints("1"))
		l.wait(t, "no longer rejected")
	}
	write(t, path, "{}")
	l.wait(t, emptyRejected)
	s, l = restart(t, s, o)
	l.wait(t, emptyRejected)
	expectServed(t, s, "after a restart", map[string]int{"a": 1})
	write(t, path, strings.ReplaceAll(endpoints("1", "2"), "- endpoint", "- health_status: DRAINING\n    endpoint"))
	l.wait(t, "cluster served")
	expectServed(t, s, "draining", map[string]int{"a": 2})
}

// A cluster without endpoints must not delay edits of the other clusters in its file.
func TestEmptyClusterKeepsEndpoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "all.yaml")
	write(t, path, staticClusters(map[string]int{"a": 1, "b": 1, "c": 1}))
	s, l := start(t, Options{Paths: []string{dir}})
	expectServed(t, s, "at first", map[string]int{"a": 1, "b": 1, "c": 1})
	write(t, path, staticClusters(map[string]int{"a": 2, "b": 0}))
	line := l.wait(t, "cluster removed")
	if line["cluster"] != "c" {
		t.Errorf("the log says %v, want that c, which the file no longer has, is removed", line)
	}
	line = l.wait(t, emptyRejected)
	if problem, _ := line["error"].(string); line["level"] != "WARN" || problem != path+":3:45: no endpoint is listed, want at least one (to take all out of use, set their health_status to DRAINING)" || fmt.Sprint(line["clusters"]) != "[b]" {
		t.Errorf("the log says %v", line)
	}
	expectServed(t, s, "with an empty b", map[string]int{"a": 2, "b": 1})
	write(t, path, staticClusters(map[string]int{"a": 3, "b": 2}))
	l.wait(t, "no longer rejected")
	expectServed(t, s, "once it is mended", map[string]int{"a": 3, "b": 2})
}

// If the server has never seen the endpoints of a cluster, no response must say that the cluster does
// not exist: its clients would drop the endpoints that they have.
func TestEmptyClusterAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "all.yaml")
	write(t, path, staticClusters(map[string]int{"a": 1, "b": 0}))
	s, l := start(t, Options{Paths: []string{dir}})
	if line := l.wait(t, "rejected, and not served"); line["level"] != "WARN" || !strings.HasPrefix(fmt.Sprint(line["error"]), path+":3:45: no endpoint is listed") {
		t.Errorf("the log says %v", line)
	}
	stream := openStream(t, s, nil)
	send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: clusterType, ResourceNames: []string{"a", "b"}, Node: &corev3.Node{Id: "me"}})
	l.wait(t, "client request")
	write(t, path, staticClusters(map[string]int{"a": 1, "b": 2}))
	if got := receive(t, stream).GetResources(); len(got) != 2 {
		t.Errorf("the first response has %d clusters, want both", len(got))
	}
	expectServed(t, s, "in the end", map[string]int{"a": 1, "b": 2})
}
