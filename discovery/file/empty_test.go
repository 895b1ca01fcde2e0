package file

import (
	"strings"
	"testing"
)

// A file without endpoints is usually a mistake of the program that generates it. The last endpoints
// must stay in use, and the log must say where the mistake is. Endpoints that are DRAINING take a
// cluster out of use on purpose.
func TestEmptyFileKeepsEndpoints(t *testing.T) {
	for _, content := range []string{"{}", "endpoints: []", "cluster_name: endpoints", "endpoints: [{locality: {zone: a}, lb_endpoints: []}]"} {
		path := newPath(t)
		writeOld(t, path, onePort(1))
		c := watchFile(t, path)
		if got := c.next(t); got != stateOf(1) {
			t.Fatalf("state = %s, want %s", got, stateOf(1))
		}
		replace(t, path, content)
		logged.Wait(t, testTimeout, "WARNING", path+":1:1: no endpoint is listed", "; the previous endpoints stay in use")
		if got := watchFile(t, path).nextError(t); !strings.Contains(got, path+":1:1: no endpoint is listed") {
			t.Errorf("%s: without an earlier answer, the error is %q", content, got)
		}
		replace(t, path, onePort(2))
		if got := c.next(t); got != stateOf(2) {
			t.Errorf("%s: the next state is %s, want %s", content, got, stateOf(2))
		}
		replace(t, path, strings.Replace(onePort(2), "- endpoint", "- health_status: DRAINING\n    endpoint", 1))
		if got := c.next(t); got != "" {
			t.Errorf("after an edit that drains the endpoint, the state is %s, want none", got)
		}
	}
}

// A cluster without endpoints must keep its own last endpoints only. Edits of the other clusters, and
// of its other fields, must take effect.
func TestEmptyClusterKeepsEndpoints(t *testing.T) {
	path := newPath(t)
	writeOld(t, path, clustersFile(aggregate("all", "a, b"), static("a", "10.0.0.1"), static("b", "10.0.0.2")))
	c := watchCluster(t, path, "all")
	if got, want := c.next(t), `10.0.0.1:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`; got != want {
		t.Fatalf("state = %s, want %s", got, want)
	}
	empty := "- name: b\n  type: STATIC\n  outlier_detection: {interval: 5s}\n  load_assignment: {endpoints: []}\n"
	replace(t, path, clustersFile(aggregate("all", "a, b"), static("a", "10.0.0.3"), empty))
	for want := `10.0.0.3:1["a/child0" "/"] 10.0.0.2:1["b/child0" "/"]`; ; {
		if got := c.next(t); got == want {
			break
		} else if !strings.Contains(got, "10.0.0.2:1") {
			t.Fatalf("state = %s, want %s", got, want)
		}
	}
	logged.Wait(t, testTimeout, "WARNING", path+":14:21: no endpoint is listed")
	replace(t, path, clustersFile(aggregate("all", "b, a"), static("a", "10.0.0.3"), strings.Replace(empty, "5s", "7s", 1)))
	c.awaitConfig(t, `"b/child0":{"config":[{"understudy_outlier_detection":{"interval":"7s"`)
}
