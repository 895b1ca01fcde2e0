package serve

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

func failoverTarget(dir string) string {
	return "failover:///file:%2F%2F" + filepath.Join(dir, "east.yaml") + ",file:%2F%2F" + filepath.Join(dir, "west.yaml")
}

// waitForEndpoints waits until the cluster shop is served with the given number of endpoints. It
// ignores other numbers, because the discovery mechanisms of the target answer one after another.
func (l *logRecorder) waitForEndpoints(t *testing.T, endpoints float64) {
	t.Helper()
	for line := l.wait(t, "cluster served"); line["cluster"] != "shop" || line["endpoints"] != endpoints; {
		line = l.wait(t, "cluster served")
	}
}

// A cluster from a target has the endpoints of all discovery mechanisms in the target, and follows
// their changes.
func TestFrom(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "east.yaml", "west.yaml")
	write(t, filepath.Join(dir, "west.yaml"), endpoints("2", "3")+"policy: {dropOverloads: [{category: load, dropPercentage: {numerator: 1}}]}\n")
	s, l := start(t, Options{From: []string{"shop=" + failoverTarget(dir)}, Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
	if notes, _ := l.wait(t, "some settings of the target are ignored")["notes"].(string); !strings.Contains(notes, "west.yaml: its drops have no effect") {
		t.Errorf("the log says %q, want that the drops of the second mechanism have no effect", notes)
	}
	l.waitForEndpoints(t, 3)
	next := requestEndpoints(t, openStream(t, s, nil), "shop")
	if got := next(); got != 3 {
		t.Errorf("%d endpoints at first, want 3", got)
	}
	write(t, filepath.Join(dir, "east.yaml"), endpoints("1", "4"))
	if got := next(); got != 4 {
		t.Errorf("%d endpoints after an edit, want 4", got)
	}
	write(t, filepath.Join(dir, "east.yaml"), endpoints("0"))
	if problem, _ := l.wait(t, "target fails, its last good endpoints are still served")["error"].(string); !strings.Contains(problem, "east.yaml:3:") {
		t.Errorf("the log says %q, want the place", problem)
	}
	expectServed(t, s, "with a broken entry", map[string]int{"a": 1, "shop": 4})
	write(t, filepath.Join(dir, "east.yaml"), endpoints("1"))
	if got := next(); got != 3 {
		t.Errorf("%d endpoints once it is mended, want 3", got)
	}
	l.wait(t, "target has recovered")
}

// Until a target has answered, no response says that its cluster does not exist.
func TestFromTargetWithoutAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, l := start(t, Options{From: []string{"shop=" + failoverTarget(dir)}, Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
	stream := openStream(t, s, nil)
	send(t, stream, &discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.ClusterType, ResourceNames: []string{"shop"}, Node: &corev3.Node{Id: "me"}})
	if problem, _ := l.wait(t, "target fails, none of its endpoints are served")["error"].(string); !strings.Contains(problem, "no such file") {
		t.Errorf("the log says %q, want why", problem)
	}
	expectServed(t, s, "beside it", map[string]int{"a": 1})
	write(t, filepath.Join(dir, "west.yaml"), endpoints("1"))
	if got := len(receive(t, stream).GetResources()); got != 1 {
		t.Errorf("%d clusters, want the one that is there now", got)
	}
	expectServed(t, s, "with an entry that is there", map[string]int{"a": 1, "shop": 1})
}

func TestFromSurvivesRestart(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "east.yaml", "west.yaml")
	write(t, filepath.Join(dir, "west.yaml"), endpoints("2", "3"))
	o := Options{From: []string{"shop=" + failoverTarget(dir)}, Cache: t.TempDir()}
	s, l := start(t, o)
	l.waitForEndpoints(t, 3)
	s.Stop()
	rename(t, dir, dir+".away")
	s, l = start(t, o)
	for l.wait(t, "cluster restored from the cache")["cluster"] != "shop" {
	}
	expectServed(t, s, "while the target fails", map[string]int{"shop": 3})
	s.Stop()
	s, _ = start(t, Options{From: []string{"other=" + failoverTarget(dir)}, Cache: o.Cache, Paths: []string{makeDir(t, t.TempDir(), "a.yaml")}})
	expectServed(t, s, "under another name", map[string]int{"a": 1})
}

// If a file and a target define clusters of the same name, the server serves one cluster and
// rejects the other.
func TestFromConflictsWithFile(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "shop.yaml")
	s, l := start(t, Options{From: []string{"shop=127.0.0.1:5,127.0.0.1:6"}, Paths: []string{dir}})
	if problem, _ := l.wait(t, "rejected, and not served")["error"].(string); !strings.Contains(problem, `cluster "shop" is already in `) {
		t.Errorf("the log says %q, want whose the cluster is", problem)
	}
	expectServed(t, s, "with two of one name", map[string]int{"shop": endpointCounts(t, fetch(t, s, resourcev3.EndpointType, "shop"))["shop"]})
}

func TestFromRejectsInvalidTargets(t *testing.T) {
	for _, test := range []struct{ from, want string }{
		{"shop=nosuch:///a", `no resolver is registered for scheme "nosuch"`},
		{"shop=file:///a?nosuch=1", `unknown parameter "nosuch"`},
		{"file:///a?nosuch=1", `unknown parameter "nosuch"`},
		{"=127.0.0.1:5", "has no name; want NAME=TARGET"},
		{"xdstp:=127.0.0.1:5", "want host:port"},
		{"", "target has no entries"},
	} {
		_, err := Start(context.Background(), Options{Listen: "127.0.0.1:0", From: []string{test.from}})
		if err == nil || !strings.Contains(err.Error(), "--from: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("--from %q: %v, want %q", test.from, err, test.want)
		}
	}
	_, err := Start(context.Background(), Options{Listen: "127.0.0.1:0", From: []string{"a=127.0.0.1:5", "a=127.0.0.1:6"}})
	if err == nil || !strings.Contains(err.Error(), `cluster "a" is given twice`) {
		t.Errorf("one name twice: %v", err)
	}
}

func TestSplitFrom(t *testing.T) {
	for from, want := range map[string]string{
		"shop=127.0.0.1:5":                           "shop 127.0.0.1:5",
		"us.example.com:443,eu.example.com:443":      "us.example.com:443 us.example.com:443,eu.example.com:443",
		"srv:///shop.example.com?refresh=9s":         "shop.example.com srv:///shop.example.com?refresh=9s",
		"kubernetes:///web.shop:grpc":                "web.shop kubernetes:///web.shop:grpc",
		"web=kubernetes:///web.shop:grpc?refresh=9s": "web kubernetes:///web.shop:grpc?refresh=9s",
	} {
		name, target, err := splitFrom(from)
		if got := name + " " + target; err != nil || got != want {
			t.Errorf("--from %s is %q, %v, want %q", from, got, err, want)
		}
	}
}
