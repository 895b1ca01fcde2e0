package filewatch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A new file must be read twice, because a write just after the first read may leave its
// modification time unchanged.
func TestAFileIsReadOnceMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for about, test := range map[string]struct {
		age  time.Duration
		more bool
	}{"fresh": {0, true}, "old": {time.Hour, false}, "of a clock that is ahead": {-time.Hour, true}} {
		write(t, path, "1\n")
		at := time.Now().Add(-test.age)
		must(t, os.Chtimes(path, at, at))
		f := NewFile(path)
		if f.Look(Moved) != Due {
			t.Errorf("%s: the file is not due", about)
		}
		if !f.Read() || f.Next().IsZero() == test.more {
			t.Errorf("%s: the file is due again at %v", about, f.Next())
		}
		write(t, path, "12\n")
		if f.Look(Moved); f.Next().IsZero() {
			t.Errorf("%s: the file is not due again after a change", about)
		}
	}
}

// A file that changes while it is read must be read again at once. A file that cannot be read is
// read again after a backoff.
func TestAFileThatIsNotRead(t *testing.T) {
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
		if in := time.Until(f.Next()); in < 800*time.Millisecond || in > 1200*time.Millisecond {
			t.Errorf("the file is due again in %v, want 1 s ±20%%", in)
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

// The age of a new file comes from its modification time, but the remaining wait must not depend on
// the wall clock. Otherwise, setting the clock back by an hour would delay the read by an hour.
func TestTheClockIsSetBackAfterAFileAppears(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte("text\n"), 0o600))
	info, err := os.Stat(path)
	must(t, err)
	var r rest
	r.look(path, info, Looked)
	if age := time.Since(r.since); age > time.Minute {
		t.Errorf("a new file has the age %v", age)
	}
	if !strings.Contains(r.since.String(), " m=") {
		t.Errorf("the age is counted from %v, which has no reading of the monotonic clock", r.since)
	}
}
