package file

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// limitFiles prevents the process from opening files until restore is called or the test ends.
// Tests that call it must not run in parallel.
func limitFiles(t *testing.T) (restore func()) {
	t.Helper()
	var original syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &original); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: original.Max}); err != nil {
		t.Fatal(err)
	}
	restore = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &original); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	return restore
}

// If a file is edited while the process cannot open files, the edit must take effect as soon as
// files can be opened again. The problem must be logged once.
func TestEditWhileFilesCannotBeOpened(t *testing.T) {
	for name, outage := range map[string]time.Duration{"a moment": 0, "an hour": time.Hour} {
		path := newPath(t)
		synctest.Test(t, func(t *testing.T) {
			write(t, path, onePort(1))
			c := watchFile(t, path)
			c.expect(t, 1)
			write(t, path+".new", onePort(2))
			restore := limitFiles(t)
			rename(t, path+".new", path)
			const text = ": too many open files; the previous endpoints stay in use"
			logged.Wait(t, testTimeout, path+text)
			sleep(outage)
			if n := logged.Count(path + text); n != 1 {
				t.Errorf("%s: the failure was logged %d times, want once", name, n)
			}
			restore()
			sleep(maxRetryTime)
			c.expect(t, 2)
			if len(c.errors) != 0 {
				t.Errorf("%s: the channel received the error %v although it had endpoints", name, <-c.errors)
			}
		})
	}
}

// A file that cannot be opened must be tried again until it can. Each failure must be reported once.
func TestFailureToOpenIsReportedOnce(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		write(t, path, onePort(1))
		restore := limitFiles(t)
		h := startSource(t, path)
		sleep(time.Hour)
		if n := len(h.failures); n != 1 {
			t.Errorf("%d failures were reported in an hour, want one", n)
		}
		restore()
		sleep(maxRetryTime)
		if len(h.answers) != 1 {
			t.Error("the file was not read once it could be")
		}
		for name, change := range map[string]func(){
			"broken":  func() { write(t, path, "endpoints: [") },
			"removed": func() { rename(t, path, path+".away") },
		} {
			before := len(h.failures)
			change()
			sleep(time.Hour)
			if n := len(h.failures) - before; n != 1 {
				t.Errorf("%s: %d failures were reported in an hour, want one", name, n)
			}
		}
	})
}
