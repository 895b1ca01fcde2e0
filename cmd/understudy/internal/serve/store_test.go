package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// What would be too large to be read is not written: the file keeps its last content.
func TestTooLargeCacheIsNotWritten(t *testing.T) {
	served := map[string]servedCluster{"a": {cluster: newStatic(adstest.Cluster("a", "10.0.0.1:1")), source: "a.yaml"}}
	s := &store{path: filepath.Join(t.TempDir(), storeName), limit: maxStore}
	must(t, s.write(served))
	info, err := os.Stat(s.path)
	must(t, err)
	s.limit = info.Size()
	must(t, s.write(served))
	s.limit--
	if err := s.write(nil); err != nil {
		t.Error(err)
	}
	if err := s.write(served); err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("more than the limit is written: %v", err)
	}
}

// A disk that hangs does not keep the server from stopping.
func TestStopDespiteHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs()
		s := &store{log: slog.New(slog.NewJSONHandler(l, nil)), latest: make(chan map[string]servedCluster, 1), done: make(chan struct{})}
		begin := time.Now()
		s.close()
		if elapsed := time.Since(begin); elapsed != stopTimeout {
			t.Errorf("the store waited for %v, want %v", elapsed, stopTimeout)
		}
		l.wait(t, "cache is still being written, and may not have the last changes")
	})
}
