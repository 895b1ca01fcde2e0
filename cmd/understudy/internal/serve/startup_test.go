package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	if left, err := os.ReadDir(o.Cache); err != nil || len(left) != 2 {
		t.Errorf("the cache holds %d entries (%v), want those of a and b", len(left), err)
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
		if line := l.wait(t, "cluster no longer has a file"); line["cluster"] != names[0] {
			t.Errorf("cluster %v has lost its file, want %s", line["cluster"], names[0])
		}
		s.Stop()
	}
}

func TestHostileCache(t *testing.T) {
	dir, cache := makeDir(t, t.TempDir(), "a.yaml"), t.TempDir()
	file := filepath.Join(dir, "b.yaml")
	write(t, file, "endpoints: [")
	entry := func(cluster, text string) string {
		return fmt.Sprintf(`{"file": %q, "cluster": {"clusterName": %q, %s}}`, file, cluster, text)
	}
	const good = `"endpoints": [{"locality": {"zone": "z"}, "loadBalancingWeight": 1, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "127.0.0.1", "portValue": 1}}}}]}]`
	tests := []struct{ name, text, want string }{
		{entryName("port"), entry("port", strings.Replace(good, `Value": 1`, `Value": 0`, 1)), "port_value is 0"},
		{entryName("gap"), entry("gap", strings.Replace(good, `"lbEndpoints"`, `"priority": 7, "lbEndpoints"`, 1)), "priority 7 is used"},
		{entryName("another"), entry("b", good), "another name"},
		{entryName("b") + ".bak", entry("b", good), "another name"},
		{entryName(""), entry("", good), "no name"},
		{entryName("deep"), strings.Repeat("[", 1_000_000), "max depth"},
		{entryName("empty"), "", "unexpected end"},
		{entryName("none"), `{"file": "b.yaml"}`, "syntax error"},
		{"notes.txt", "hello", "invalid character"},
		{entryName("directory"), "", "not a regular file"},
		{entryName("endless"), "", "not a regular file"},
		{entryName("huge"), "", "has 67108865 bytes"},
	}
	for _, test := range tests {
		must(t, os.WriteFile(filepath.Join(cache, test.name), []byte(test.text), 0o600))
	}
	remove(t, filepath.Join(cache, entryName("directory")))
	must(t, os.Mkdir(filepath.Join(cache, entryName("directory")), 0o700))
	symlink(t, "/dev/zero", filepath.Join(cache, entryName("endless")))
	must(t, os.Truncate(filepath.Join(cache, entryName("huge")), maxEntry+1))
	must(t, os.WriteFile(filepath.Join(cache, tempPrefix+"1"), []byte("half"), 0o600))
	otherDirEntry := strings.Replace(entry("elsewhere", good), dir, "/elsewhere", 1)
	must(t, os.WriteFile(filepath.Join(cache, entryName("elsewhere")), []byte(otherDirEntry), 0o600))
	must(t, os.WriteFile(filepath.Join(cache, entryName("good")), []byte(entry("good", good)), 0o600))

	s, l := start(t, Options{Paths: []string{dir}, Cache: cache})
	for range tests {
		problem, _ := l.wait(t, "cache entry ignored")["error"].(string)
		name, reason, _ := strings.Cut(strings.TrimPrefix(problem, cache+"/"), ": ")
		i := slices.IndexFunc(tests, func(test struct{ name, text, want string }) bool { return test.name == name })
		if i < 0 || !strings.Contains(reason, tests[i].want) {
			t.Errorf("the log says %q, want the reason", problem)
		}
	}
	expectServed(t, s, "with a hostile cache", map[string]int{"a": 1, "good": 1})
	got := endpointCounts(t, fetch(t, s, endpointType, "port", "gap", "another", "b", "deep", "empty", "none", "elsewhere", "huge"))
	if len(got) != 0 {
		t.Errorf("clusters %v are served out of a hostile cache", got)
	}
	if _, err := os.Stat(filepath.Join(cache, tempPrefix+"1")); err == nil {
		t.Error("what a killed process left half written is still there")
	}
	if _, err := os.Stat(filepath.Join(cache, entryName("elsewhere"))); err != nil {
		t.Errorf("the entry of a file that is not served here was removed: %v", err)
	}
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
	l.wait(t, "cache entry cannot be written")
	expectServed(t, s, "without a cache", map[string]int{"a": 2})
	must(t, os.Mkdir(cache, 0o700))
	write(t, filepath.Join(dir, "b.yaml"), endpoints("1"))
	for l.wait(t, "cluster served")["cluster"] != "b" {
	}
	s.Stop()
	for _, name := range []string{"a", "b"} {
		if _, err := os.Stat(filepath.Join(cache, entryName(name))); err != nil {
			t.Errorf("%s is not in the cache: %v", name, err)
		}
	}
}

// A file name need not be UTF-8. Its cluster then gets a valid name, and other files are not
// affected.
func TestFileNameIsNotUTF8(t *testing.T) {
	s, _ := start(t, Options{Paths: []string{makeDir(t, t.TempDir(), "a.yaml", "caf\xe9.yaml")}})
	expectServed(t, s, "beside a name that is not UTF-8", map[string]int{"a": 1, "caf\ufffd": 1})
}

func TestImmediateStop(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, endpoints("1"))
	for range 50 {
		s, _ := start(t, Options{Paths: []string{path}})
		s.Stop()
		if err := s.Wait(); err != nil {
			t.Fatalf("the server ends with %v", err)
		}
	}
}
