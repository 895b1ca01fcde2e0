package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStartSkipsInvalidFiles(t *testing.T) {
	dir := makeDir(t, t.TempDir(), "a.yaml", "b.yaml", ".hidden.yaml")
	write(t, filepath.Join(dir, "b.yaml"), endpoints("0"))
	write(t, filepath.Join(dir, "c.yaml"), "clusterName: a\n"+endpoints("1"))
	s, l := start(t, Options{Paths: []string{dir, filepath.Join(dir, "none.yaml")}})
	for _, want := range []string{"b.yaml:3:", `c.yaml: cluster "a" is already in `, "none.yaml: no such file"} {
		if problem, _ := l.wait(t, "rejected, and not served")["error"].(string); !strings.Contains(problem, want) {
			t.Errorf("the log says %q, want %q", problem, want)
		}
	}
	expectServed(t, s, "with broken files", map[string]int{"a": 1})
	if got := endpointCounts(t, fetch(t, s, endpointType, "b", ".hidden")); len(got) != 0 {
		t.Errorf("clusters %v are served, want none of a broken or hidden file", got)
	}
}

func TestEmptyDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, l := start(t, Options{Paths: []string{dir}})
	if help, _ := l.wait(t, "nothing to serve yet")["error"].(string); !strings.Contains(help, ".yaml") {
		t.Errorf("the log says %q, want which files are looked for", help)
	}
	write(t, filepath.Join(dir, "a.yaml"), endpoints("1"))
	l.wait(t, "cluster served")
	expectServed(t, s, "with the first file", map[string]int{"a": 1})
}

func restart(t *testing.T, s *Server, o Options) (*Server, *logRecorder) {
	t.Helper()
	s.Stop()
	return start(t, o)
}

func TestCacheSurvivesRestart(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "a.yaml", "b.yaml", "gone.yaml")
	o := Options{Paths: []string{dir}, Cache: filepath.Join(t.TempDir(), "new", "cache"), RemovalDelay: oneHour}
	s, l := start(t, o)
	next := requestEndpoints(t, openStream(t, s, nil), "a")
	next()
	write(t, filepath.Join(dir, "a.yaml"), endpoints("1", "2")) // now the last valid content differs from the first content
	next()

	write(t, filepath.Join(dir, "a.yaml"), "endpoints: [")
	l.wait(t, "rejected, its last good content is still served")
	s, l = restart(t, s, o)
	expectServed(t, s, "with a broken file", map[string]int{"a": 2, "b": 1, "gone": 1})
	l.wait(t, "cluster restored from the cache")

	s.Stop()
	remove(t, filepath.Join(dir, "gone.yaml"))
	s, l = start(t, o)
	l.wait(t, "cluster no longer has a file") // the cluster is served until the removal delay has passed
	expectServed(t, s, "with a file that is gone", map[string]int{"a": 2, "b": 1, "gone": 1})

	s.Stop()
	rename(t, dir, dir+".away")
	s, _ = start(t, o)
	expectServed(t, s, "without the directory", map[string]int{"a": 2, "b": 1})
	rename(t, dir+".away", dir)

	o.RemovalDelay = 0
	s, l = restart(t, s, o)
	l.wait(t, "cluster removed")
	s, _ = restart(t, s, Options{Paths: o.Paths})
	expectServed(t, s, "without the cache", map[string]int{"b": 1})
	if got := endpointCounts(t, fetch(t, s, endpointType, "a", "gone")); len(got) != 0 {
		t.Errorf("without the cache %v are served, want nothing of a broken file", got)
	}
}

// After a restart, the cache knows the last cluster of each file, even if the file contained
// another cluster before.
func TestCacheKnowsLastClusterOfFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f.yaml")
	for _, names := range [][]string{{"x", "y"}, {"y", "x"}} {
		write(t, path, "clusterName: "+names[0]+"\n"+endpoints("1"))
		o := Options{Paths: []string{dir}, Cache: t.TempDir(), RemovalDelay: oneHour}
		s, l := start(t, o)
		write(t, path, "clusterName: "+names[1]+"\n"+endpoints("1"))
		l.wait(t, "cluster no longer has a file")
		s.Stop()
		write(t, path, "endpoints: [")
		s, l = start(t, o)
		if line := l.wait(t, "rejected, its last good content is still served"); fmt.Sprint(line["clusters"]) != "["+names[1]+"]" {
			t.Errorf("clusters %v are served from the file, want %s", line["clusters"], names[1])
		}
		s.Stop()
		if served := s.publisher.clusters.served; served[names[0]].missingSince.IsZero() || !served[names[1]].missingSince.IsZero() {
			t.Errorf("%v are served", served)
		}
	}
}

func TestHostileCache(t *testing.T) {
	dir, cache := makeDir(t, t.TempDir(), "a.yaml"), t.TempDir()
	path, file := filepath.Join(cache, storeName), filepath.Join(dir, "b.yaml")
	write(t, file, "endpoints: [")
	entry := func(cluster, text string) string {
		return fmt.Sprintf(`{"file": %q, "cluster": {"name": %q, "loadAssignment": {%s}}}`, file, cluster, text)
	}
	const good = `"endpoints": [{"locality": {"zone": "z"}, "loadBalancingWeight": 1, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "127.0.0.1", "portValue": 1}}}}]}]`
	for _, test := range []struct {
		what string
		make func()
		want string
	}{
		{"a link to what has no end", func() { symlink(t, "/dev/zero", path) }, "not a regular file"},
		{"a directory", func() { makeDir(t, path) }, "not a regular file"},
		{"a huge file", func() { must(t, os.WriteFile(path, nil, 0o600)); must(t, os.Truncate(path, maxStore+1)) }, "has 268435457 bytes"},
		{"deep JSON", func() { write(t, path, strings.Repeat("[", 1_000_000)) }, "max depth"},
		{"half a file", func() { write(t, path, "["+entry("b", good)+", {") }, "unexpected end"},
		{"no file", func() { write(t, path, "") }, "unexpected end"},
	} {
		remove(t, path)
		test.make()
		s, l := start(t, Options{Paths: []string{dir}, Cache: cache})
		if problem, _ := l.wait(t, "cache cannot be read")["error"].(string); !strings.Contains(problem, test.want) {
			t.Errorf("%s: the log says %q, want %q", test.what, problem, test.want)
		}
		expectServed(t, s, "with "+test.what, map[string]int{"a": 1})
		s.Stop()
	}
	remove(t, path)
	wrong := []struct{ text, want string }{
		{entry("port", strings.Replace(good, `Value": 1`, `Value": 0`, 1)), "port_value is 0"},
		{entry("gap", strings.Replace(good, `"lbEndpoints"`, `"priority": 7, "lbEndpoints"`, 1)), "priority 7 is used"},
		{entry("", good), "no name"},
		{`{"file": "b.yaml"}`, "syntax error"},
		{`7`, "cannot unmarshal"},
	}
	list := []string{strings.Replace(entry("elsewhere", good), dir, "/elsewhere", 1), entry("good", good)}
	for _, w := range wrong {
		list = append(list, w.text)
	}
	write(t, path, "["+strings.Join(list, ",")+"]")
	s, l := start(t, Options{Paths: []string{dir}, Cache: cache})
	for _, w := range wrong {
		if problem, _ := l.wait(t, "cache entry ignored")["error"].(string); !strings.Contains(problem, w.want) {
			t.Errorf("the log says %q, want %q", problem, w.want)
		}
	}
	expectServed(t, s, "with a hostile cache", map[string]int{"a": 1, "good": 1})
	if got := endpointCounts(t, fetch(t, s, endpointType, "port", "gap", "", "elsewhere")); len(got) != 0 {
		t.Errorf("clusters %v are served out of a hostile cache", got)
	}
}

// A process may be killed at any time while it writes the cache. The next one then has the old
// content or the new one.
func TestCacheSurvivesKill(t *testing.T) {
	dir, cache := makeDir(t, t.TempDir(), "a.yaml", "b.yaml"), t.TempDir()
	o := Options{Paths: []string{dir}, Cache: cache}
	s, _ := start(t, o)
	s.Stop()
	path := filepath.Join(cache, storeName)
	old, err := os.ReadFile(path)
	must(t, err)
	for _, name := range []string{"a.yaml", "b.yaml"} {
		write(t, filepath.Join(dir, name), "endpoints: [")
	}
	for _, half := range []int{0, 1, len(old) / 2, len(old) - 1, len(old)} {
		must(t, os.WriteFile(path+".new", old[:half], 0o600))
		s, _ = start(t, o)
		expectServed(t, s, fmt.Sprintf("with %d bytes of the next cache", half), map[string]int{"a": 1, "b": 1})
		s.Stop()
	}
	write(t, filepath.Join(dir, "a.yaml"), endpoints("1", "2"))
	s, _ = start(t, o)
	s.Stop()
	write(t, filepath.Join(dir, "a.yaml"), "endpoints: [")
	s, _ = start(t, o)
	expectServed(t, s, "with the new cache", map[string]int{"a": 2, "b": 1})
}

// If the cache directory is not writable, the server still serves. When the directory becomes
// writable, the cache is written.
func TestUnwritableCache(t *testing.T) {
	t.Parallel()
	dir, cache := makeDir(t, t.TempDir(), "a.yaml"), filepath.Join(t.TempDir(), "cache")
	s, l := start(t, Options{Paths: []string{dir}, Cache: cache})
	next := requestEndpoints(t, openStream(t, s, nil), "a")
	next()
	rename(t, cache, cache+".away")
	write(t, filepath.Join(dir, "a.yaml"), endpoints("1", "2"))
	next()
	l.wait(t, "cache cannot be written")
	expectServed(t, s, "without a cache", map[string]int{"a": 2})
	must(t, os.Mkdir(cache, 0o700))
	write(t, filepath.Join(dir, "b.yaml"), endpoints("1"))
	next = requestEndpoints(t, openStream(t, s, nil), "b")
	for next() != 1 {
	}
	s.Stop()
	data, err := os.ReadFile(filepath.Join(cache, storeName))
	if err != nil || !strings.Contains(string(data), `"a"`) || !strings.Contains(string(data), `"b"`) {
		t.Errorf("the cache is %.200s (%v), want a and b", data, err)
	}
}

// A file name need not be UTF-8. Its cluster then gets a valid name, and other files are not
// affected.
func TestFileNameIsNotUTF8(t *testing.T) {
	s, _ := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml", "caf\xe9.yaml")}})
	expectServed(t, s, "beside a name that is not UTF-8", map[string]int{"a": 1, "caf\ufffd": 1})
}

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
	for _, want := range []string{"broken.yaml:2:", "inside.yaml:1:14: ", "list.yaml:1:", "service.yaml:1:", "xdstp:file.yaml:1:"} {
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

func TestImmediateStop(t *testing.T) {
	path := filepath.Join(makeDir(t, t.TempDir(), "a.yaml"), "a.yaml")
	for range 20 {
		s, _ := start(t, Options{Paths: []string{path}})
		if s.Stop(); s.err != nil {
			t.Fatalf("the server ends with %v", s.err)
		}
	}
}
