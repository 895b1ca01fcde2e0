package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Cluster names that begin with "xdstp:" are refused wherever they come from, because clients treat
// such a name as a URI.
func TestXdstpNamesAreRejected(t *testing.T) {
	dir, cache := makeDir(t, t.TempDir(), "a.yaml", "xdstp:file.yaml"), t.TempDir()
	write(t, filepath.Join(dir, "inside.yaml"), "clusterName: xdstp://inside\n"+endpoints("1"))
	write(t, filepath.Join(dir, "list.yaml"), `clusters: [{name: "xdstp:list", type: EDS}]`)
	write(t, filepath.Join(dir, "service.yaml"), `clusters: [{name: service, type: EDS, eds_cluster_config: {service_name: "xdstp:service"}}]`)
	write(t, filepath.Join(dir, "broken.yaml"), "endpoints: [")
	kept := fmt.Sprintf(`[{"file": %q, "cluster": {"name": "xdstp:kept", "type": "EDS"}}]`, filepath.Join(dir, "broken.yaml"))
	must(t, os.WriteFile(filepath.Join(cache, storeName), []byte(kept), 0o600))
	s, l := start(t, Options{Paths: []string{dir}, Cache: cache})
	if text, _ := l.wait(t, "cache entry ignored")["error"].(string); !strings.Contains(text, "an xdstp: name") {
		t.Errorf("the entry of the cache is ignored since %s", text)
	}
	for _, want := range []string{"broken.yaml:1:", "inside.yaml:1:14: ", "list.yaml:1:", "service.yaml:1:", "xdstp:file.yaml:1:"} {
		text, _ := l.wait(t, "rejected, and not served")["error"].(string)
		if !strings.Contains(text, want) || !strings.HasPrefix(want, "broken") && !strings.Contains(text, "an xdstp: name") {
			t.Errorf("the log says %q, want %s and why", text, want)
		}
	}
	remove(t, filepath.Join(dir, "broken.yaml"))
	if got := endpointCounts(t, fetch(t, s, endpointType)); len(got) != 1 || got["a"] != 1 {
		t.Errorf("served are %v, want a alone", got)
	}
}
