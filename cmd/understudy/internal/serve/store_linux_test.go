package serve

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Edits are served while the cache is still being written: here, to a pipe that nobody reads.
func TestSlowCacheDoesNotDelayUpdates(t *testing.T) {
	t.Parallel()
	path, cache := filepath.Join(makeDir(t, t.TempDir(), "a.yaml"), "a.yaml"), t.TempDir()
	pipe := filepath.Join(cache, storeName+".new")
	must(t, syscall.Mkfifo(pipe, 0o600))
	s, l := start(t, Options{Paths: []string{path}, Cache: cache})
	l.wait(t, "cluster served")
	for n := range 3 {
		write(t, path, endpoints([]string{"1", "2", "3", "4"}[:n+2]...))
		if line := l.wait(t, "cluster served"); line["endpoints"] != float64(n+2) {
			t.Errorf("the log says %v, want the edit", line)
		}
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY, 0)
	must(t, err)
	defer reader.Close()
	remove(t, pipe)
	s.Stop()
}

func TestRestartWritesOnlyChangedEntries(t *testing.T) {
	dir := makeDir(t, t.TempDir(), "a.yaml", "b.yaml")
	o := Options{Paths: []string{dir}, Cache: t.TempDir()}
	written := func() os.FileInfo {
		s, _ := start(t, o)
		s.Stop()
		info, err := os.Stat(filepath.Join(o.Cache, storeName))
		must(t, err)
		return info
	}
	first := written()
	if !os.SameFile(first, written()) {
		t.Error("the cache was written again, although nothing had changed")
	}
	write(t, filepath.Join(dir, "b.yaml"), endpoints("1", "2"))
	if os.SameFile(first, written()) {
		t.Error("the cache was not written")
	}
}
