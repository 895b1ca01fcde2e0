package filewatch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file is read once more after a step of the coarsest clock, since its time need not tell of each
// change. One that was old when it was first seen is not.
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
			t.Errorf("%s: it is not due", about)
		}
		if !f.Read() || f.Next().IsZero() == test.more {
			t.Errorf("%s: it is to be read again at %v", about, f.Next())
		}
		write(t, path, "12\n")
		if f.Look(Moved); f.Next().IsZero() {
			t.Errorf("%s: after a change it is not to be read again", about)
		}
	}
}

// Where the file changes while it is read it is read again, and where it cannot be read, by a backoff.
func TestAFileThatIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "1\n")
	f := NewFile(path)
	if f.Look(Moved) != Due {
		t.Fatal("a file that was moved to its place is not due")
	}
	write(t, path, "12\n")
	if f.Read() || f.Next().IsZero() || time.Until(f.Next()) > 0 {
		t.Errorf("changed while it was read, it is read again at %v, want now", f.Next())
	}
	must(t, os.Remove(path))
	if f.Look(Changed) != Due || f.Seen() != nil {
		t.Error("that it is gone is not found out")
	}
	f.Failed()
	if in := time.Until(f.Next()); in < 500*time.Millisecond || in > 2*time.Second {
		t.Errorf("it is tried again in %v, want about 1 s", in)
	}
	if f.Look(Looked) != Same {
		t.Error("it is tried again at once")
	}
	f.Again()
	if f.Look(Looked) != Due {
		t.Error("it is not tried again when that is asked for")
	}
}
