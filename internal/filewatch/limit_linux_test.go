package filewatch

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Where the system has no notifier to give, the files are looked at, and once it has one, it
// is used.
func TestANotifierThatTheSystemGivesLater(t *testing.T) {
	New(t.TempDir()).Close() // what Go needs itself is open
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}))
	path := filepath.Join(t.TempDir(), "a")
	w := New(path)
	defer w.Close()
	for range 2 {
		if what, ok := w.Wait(nil, nil); what != Looked || !ok {
			t.Errorf("notice %v, ok %v, want a look", what, ok)
		}
	}
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	if _, ok := w.Wait(nil, nil); !ok {
		t.Fatal("the watch ended")
	}
	w.ticker.Stop()
	write(t, path, "1")
	noticed(t, w, "the file comes")
}
