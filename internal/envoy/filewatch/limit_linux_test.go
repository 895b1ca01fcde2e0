package filewatch

import (
	"path/filepath"
	"syscall"
	"testing"
)

// The system does not allow a notifier, because the process has too many open files. Watchers must
// poll until the system allows it.
func TestNotifierIsCreatedLater(t *testing.T) {
	New(Options{}, t.TempDir()).Close() // makes the Go runtime open its own file descriptors
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}))
	path := filepath.Join(t.TempDir(), "a")
	w := New(Options{}, path)
	defer w.Close()
	for range 2 {
		if !w.Wait(nil, nil) {
			t.Error("Wait returned false")
		}
	}
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	if !w.Wait(nil, nil) {
		t.Fatal("Wait returned false")
	}
	w.ticker.Stop()
	write(t, path, "1")
	waitForNotice(t, w, "the file comes")
}
