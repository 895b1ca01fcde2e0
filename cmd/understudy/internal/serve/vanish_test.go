package serve

import (
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

const oneHour = time.Hour

func expectServed(t *testing.T, s *Server, when string, want map[string]int) {
	t.Helper()
	var names []string
	for name := range want {
		names = append(names, name)
	}
	got := endpointCounts(t, fetch(t, s, endpointType, names...))
	for _, name := range names {
		if got[name] != want[name] {
			t.Errorf("%s: cluster %s has %d endpoints, want %d", when, name, got[name], want[name])
		}
	}
	if n := len(fetch(t, s, listenerType, names...).GetResources()); n != len(names) {
		t.Errorf("%s: %d listeners, want %d", when, n, len(names))
	}
}

func TestVanishedDirectoryKeepsClusters(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for _, test := range []struct {
		name                  string
		removeDir, restoreDir func(dir string)
	}{
		{"renamed", func(dir string) { rename(t, dir, dir+".away") }, func(dir string) { rename(t, dir+".away", dir) }},
		{"unmounted", func(dir string) {
			rename(t, dir, dir+".away")
			makeDir(t, dir)
		}, func(dir string) {
			remove(t, dir)
			rename(t, dir+".away", dir)
		}},
		{"no directory", func(dir string) {
			rename(t, dir, dir+".away")
			symlink(t, "nowhere", dir)
		}, func(dir string) {
			remove(t, dir)
			rename(t, dir+".away", dir)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := makeDir(t, filepath.Join(base, test.name), "a.yaml", "b.yaml")
			s, l := start(t, Options{Paths: []string{dir}})
			next := requestEndpoints(t, openStream(t, s, nil), "a")
			next()
			test.removeDir(dir)
			if line := l.wait(t, "rejected, its last good content is still served"); len(line["clusters"].([]any)) != 2 {
				t.Errorf("the log names %v, want a and b", line["clusters"])
			}
			expectServed(t, s, "without the directory", map[string]int{"a": 1, "b": 1})
			test.restoreDir(dir)
			if line := l.wait(t, "no longer rejected"); line["path"] != dir {
				t.Errorf("the log says %v, want that the directory is back", line)
			}
			write(t, filepath.Join(dir, "a.yaml"), endpoints("1", "2"))
			if got := next(); got != 2 {
				t.Errorf("%d endpoints after an edit in the directory that is back, want 2", got)
			}
		})
	}
}

func TestEmptiedDirectoryRemovesClusters(t *testing.T) {
	dir := makeDir(t, t.TempDir(), "a.yaml")
	s, l := start(t, Options{Paths: []string{dir}})
	remove(t, filepath.Join(dir, "a.yaml"))
	l.wait(t, "cluster removed")
	if got := endpointCounts(t, fetch(t, s, endpointType, "a")); len(got) != 0 {
		t.Errorf("clusters %v are served, want none", got)
	}
}

func TestTemporarilyMissingFile(t *testing.T) {
	t.Parallel()
	dir := makeDir(t, t.TempDir(), "a.yaml", "b.yaml")
	path := filepath.Join(dir, "a.yaml")
	s, l := start(t, Options{Paths: []string{dir}, RemovalDelay: oneHour})
	next := requestEndpoints(t, openStream(t, s, nil), "a")
	next()
	remove(t, path)
	if line := l.wait(t, "cluster no longer has a file"); line["cluster"] != "a" || line["removal_in"] != "1h0m0s" {
		t.Errorf("the log says %v, want that a is removed in an hour", line)
	}
	expectServed(t, s, "without the file", map[string]int{"a": 1, "b": 1})
	write(t, path, "endpoints: [") // the file exists again, but is invalid
	l.wait(t, "rejected, its last good content is still served")
	expectServed(t, s, "with a broken file", map[string]int{"a": 1, "b": 1})
	write(t, path, "clusterName: a\n"+endpoints("1", "2"))
	if got := next(); got != 2 {
		t.Errorf("%d endpoints of the file that is back, want 2", got)
	}
	rename(t, path, filepath.Join(dir, "another.yaml"))
	remove(t, filepath.Join(dir, "b.yaml"))
	l.wait(t, "cluster no longer has a file") // the line about b, after which both files have been read
	expectServed(t, s, "after the rename", map[string]int{"a": 2, "b": 1})
	write(t, filepath.Join(dir, "another.yaml"), "clusterName: a\n"+endpoints("1", "2", "3"))
	if got := next(); got != 3 {
		t.Errorf("%d endpoints of the file with another name, want 3", got)
	}
}

func TestUnreadableFileKeepsCluster(t *testing.T) {
	dir := makeDir(t, t.TempDir(), "a.yaml")
	s, l := start(t, Options{Paths: []string{dir}})
	symlink(t, "nowhere", filepath.Join(dir, "a.yaml"))
	l.wait(t, "rejected, its last good content is still served")
	expectServed(t, s, "with a link to nowhere", map[string]int{"a": 1})
}

func TestMissingFileKeepsCluster(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, "clusterName: x\n"+endpoints("1"))
	s, l := start(t, Options{Paths: []string{path}})
	remove(t, path)
	l.wait(t, "rejected, its last good content is still served")
	expectServed(t, s, "without the file", map[string]int{"x": 1})
	write(t, path, "clusterName: y\n"+endpoints("1", "2"))
	l.wait(t, "cluster removed")
	expectServed(t, s, "with another cluster in the file", map[string]int{"y": 2})
}

func TestFilesSwapClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	write(t, a, "clusterName: x\n"+endpoints("1"))
	write(t, b, "clusterName: y\n"+endpoints("1", "2"))
	s, l := start(t, Options{Paths: []string{dir}})
	next := requestEndpoints(t, openStream(t, s, nil), "x")
	next()
	write(t, a, "clusterName: y\n"+endpoints("3"))
	l.wait(t, "rejected, its last good content is still served") // make sure that the server has read a before b changes
	expectServed(t, s, "halfway", map[string]int{"x": 1, "y": 2})
	write(t, b, "clusterName: x\n"+endpoints("3", "4", "5", "6"))
	if got := next(); got != 4 {
		t.Errorf("cluster x has %d endpoints after the exchange, want 4", got)
	}
	expectServed(t, s, "after the exchange", map[string]int{"x": 4, "y": 1})
}

// A cluster is still served for the removal delay after its file has vanished.
func TestClusterIsRemovedAfterDelay(t *testing.T) {
	dir := makeDir(t, t.TempDir(), "a.yaml", "b.yaml")
	synctest.Test(t, func(t *testing.T) {
		p, err := newPublisher(Options{Paths: []string{dir}, RemovalDelay: DefaultRemovalDelay, Log: slog.New(slog.DiscardHandler)})
		must(t, err)
		defer p.close()
		isServed := func() bool {
			p.reload()
			_, found := p.clusters.served["a"]
			return found
		}
		remove(t, filepath.Join(dir, "a.yaml"))
		if !isServed() {
			t.Error("the cluster is removed at once")
		}
		time.Sleep(DefaultRemovalDelay - 1)
		if !isServed() {
			t.Errorf("the cluster is removed in less than %v", DefaultRemovalDelay)
		}
		time.Sleep(time.Nanosecond)
		if isServed() {
			t.Errorf("the cluster is still served after %v", DefaultRemovalDelay)
		}
	})
}
