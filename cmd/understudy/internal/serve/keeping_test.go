package serve

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/understudy-lb/understudy/internal/envoy/filewatch"
)

type slowStore struct{ started chan bool }

func (s slowStore) save(ctx context.Context, _ map[string]servedCluster) {
	select {
	case s.started <- true:
	default:
	}
	<-ctx.Done()
}

func TestSlowCacheDoesNotDelayUpdates(t *testing.T) {
	t.Parallel()
	path := filepath.Join(makeDir(t, t.TempDir(), "a.yaml"), "a.yaml")
	l := newLogs()
	p, err := newPublisher(Options{Paths: []string{path}, Log: slog.New(slog.NewJSONHandler(l, nil))})
	must(t, err)
	slowCache := slowStore{make(chan bool, 1)}
	p.store = slowCache
	w := filewatch.New(path)
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { p.run(ctx, w) })
	defer done.Wait()
	defer cancel()
	<-slowCache.started
	l.wait(t, "cluster served")
	write(t, path, endpoints("1", "2"))
	if line := l.wait(t, "cluster served"); line["endpoints"] != 2.0 {
		t.Errorf("the log says %v, want the edit", line)
	}
}

func TestRestartWritesOnlyChangedEntries(t *testing.T) {
	dir := makeDir(t, t.TempDir(), "a.yaml", "b.yaml")
	o := Options{Paths: []string{dir}, Cache: t.TempDir()}
	entry := func(name string) os.FileInfo {
		info, err := os.Stat(filepath.Join(o.Cache, entryName(name)))
		must(t, err)
		return info
	}
	s, _ := start(t, o)
	s.Stop()
	a, b := entry("a"), entry("b")
	write(t, filepath.Join(dir, "b.yaml"), endpoints("1", "2"))
	s, _ = start(t, o)
	s.Stop()
	if !os.SameFile(a, entry("a")) {
		t.Error("the entry of a was written again")
	}
	if os.SameFile(b, entry("b")) {
		t.Error("the entry of b was not written")
	}
}
