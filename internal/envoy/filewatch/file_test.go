package filewatch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A new file must be read twice, because a write soon after the first read may not change the
// modification time.
func TestNewFileIsReadTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for about, test := range map[string]struct {
		age       time.Duration
		readTwice bool
	}{"fresh": {0, true}, "old": {time.Hour, false}, "of a clock that is ahead": {-time.Hour, true}} {
		write(t, path, "1\n")
		modTime := time.Now().Add(-test.age)
		must(t, os.Chtimes(path, modTime, modTime))
		f := NewFile(path)
		if f.Look(Moved) != Due {
			t.Errorf("%s: the file is not due", about)
		}
		if !f.Read() || f.Next().IsZero() == test.readTwice {
			t.Errorf("%s: the file is due again at %v", about, f.Next())
		}
		write(t, path, "12\n")
		if f.Look(Moved); f.Next().IsZero() {
			t.Errorf("%s: the file is not due again after a change", about)
		}
	}
}

// A file that changes while it is read must be read again at once. A file that cannot be read
// must be read again after a backoff.
func TestUnsuccessfulReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "1\n")
	synctest.Test(t, func(t *testing.T) {
		f := NewFile(path)
		if f.Look(Moved) != Due {
			t.Fatal("a file that was moved into place is not due")
		}
		write(t, path, "12\n")
		if f.Read() || f.Next().IsZero() || time.Until(f.Next()) > 0 {
			t.Errorf("the file changed while it was read and is due at %v, want now", f.Next())
		}
		must(t, os.Remove(path))
		if f.Look(Changed) != Due || f.Seen() != nil {
			t.Error("the removal was not detected")
		}
		f.Failed()
		if delay := time.Until(f.Next()); delay < 800*time.Millisecond || delay > 1200*time.Millisecond {
			t.Errorf("the file is due again in %v, want 1 s ±20%%", delay)
		}
		if f.Look(Looked) != Same {
			t.Error("the file is due again immediately")
		}
		f.Again()
		if f.Look(Looked) != Due {
			t.Error("the file is not due after Again")
		}
	})
}

// The age of a new file is determined from its modification time and the wall clock. Afterwards,
// the age must grow with the monotonic clock. Otherwise, a clock that is set back by an hour
// would delay the read by an hour.
func TestClockSetBackAfterNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte("text\n"), 0o600))
	info, err := os.Stat(path)
	must(t, err)
	var r writeTracker
	r.remaining(path, info, Looked)
	if age := time.Since(r.since); age > time.Minute {
		t.Errorf("a new file has the age %v", age)
	}
	if !strings.Contains(r.since.String(), " m=") {
		t.Errorf("the age is counted from %v, which has no reading of the monotonic clock", r.since)
	}
}
