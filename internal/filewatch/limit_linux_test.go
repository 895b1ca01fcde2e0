package filewatch

import (
	"path/filepath"
	"syscall"
	"testing"
)

// The system allows no further notifier. Watchers must poll until it allows one.
func TestANotifierThatTheSystemGivesLater(t *testing.T) {
	New(t.TempDir()).Close() // so that the Go runtime opens its own file descriptors before the limit is set
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}))
	path := filepath.Join(t.TempDir(), "a")
	w := New(path)
	defer w.Close()
	for range 2 {
		if what, ok := w.Wait(nil, nil); what != Looked || !ok {
			t.Errorf("notice %v, ok %v, want Looked", what, ok)
		}
	}
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	if _, ok := w.Wait(nil, nil); !ok {
		t.Fatal("Wait returned false")
	}
	w.ticker.Stop()
	write(t, path, "1")
	noticed(t, w, "the file comes")
}
