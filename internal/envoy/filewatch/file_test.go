package filewatch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/testleak"
)

func TestMain(m *testing.M) { testleak.Main(m) }

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A new file must be read twice, because a write soon after the first read may not change the
// modification time.
func TestNewFileIsReadTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for about, test := range map[string]struct {
		age       time.Duration
		readTwice bool
	}{"fresh": {0, true}, "old": {time.Hour, false}, "of a clock that is ahead": {-time.Hour, true}} {
		synctest.Test(t, func(t *testing.T) {
			write(t, path, "1\n")
			modTime := time.Now().Add(-test.age)
			must(t, os.Chtimes(path, modTime, modTime))
			f := NewFile(path)
			if due, _ := f.Look(); due == (test.age <= 0) {
				t.Errorf("%s: due at once: %v", about, due)
			} else if !due {
				awaitDue(t, f)
			}
			if !f.Read() || f.due.IsZero() == test.readTwice {
				t.Errorf("%s: the file is due again at %v", about, f.due)
			}
			write(t, path, "12\n")
			awaitDue(t, f)
			if f.Read(); f.due.IsZero() {
				t.Errorf("%s: the file is not due again after a change", about)
			}
		})
	}
}

// awaitDue waits for pause, after which a changed file must be due.
func awaitDue(t *testing.T, f *File) {
	t.Helper()
	if due, err := f.Look(); due || err != nil {
		t.Errorf("the file is due at once: %v, %v", due, err)
	}
	time.Sleep(pause)
	if due, err := f.Look(); !due || err != nil {
		t.Errorf("the file is not due after %v: %v", pause, err)
	}
}

// A file that changes while it is read must be read again once it is complete. A file that cannot be
// read must be read again after a pause.
func TestUnsuccessfulReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "1\n")
	synctest.Test(t, func(t *testing.T) {
		f := NewFile(path)
		awaitDue(t, f)
		write(t, path, "12\n")
		if f.Read() || f.Next() > 0 {
			t.Errorf("the file changed while it was read and is due in %v, want now", f.Next())
		}
		must(t, os.Remove(path))
		if due, _ := f.Look(); !due || f.seen != nil {
			t.Error("the removal was not detected")
		}
		f.Failed()
		if delay := time.Until(f.due); delay != pause {
			t.Errorf("the file is due again in %v, want %v", delay, pause)
		}
		if due, _ := f.Look(); due {
			t.Error("the file is due again immediately")
		}
		f.Again()
		if due, _ := f.Look(); !due {
			t.Error("the file is not due after Again")
		}
	})
}

// Files with the same name in different directories must not share their state.
func TestFilesWithSameName(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "a")
	write(t, one, "1\n")
	write(t, two, "1\n")
	synctest.Test(t, func(t *testing.T) {
		files := []*File{NewFile(one), NewFile(two)}
		for _, f := range files {
			awaitDue(t, f)
			f.Read()
		}
		time.Sleep(clockResolution)
		for _, f := range files {
			f.Look() // reads it a second time
			f.Read()
		}
		write(t, one, "12\n")
		awaitDue(t, files[0])
		if due, _ := files[1].Look(); due || files[1].Next() != Interval {
			t.Errorf("the other file is due: %v, in %v", due, files[1].Next())
		}
	})
}

// The age of a new file is determined from its modification time and the wall clock. Afterwards,
// the age must grow with the monotonic clock. Otherwise, a clock that is set back by an hour
// would delay the read by an hour.
func TestClockSetBackAfterNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte("text\n"), 0o600))
	f := NewFile(path)
	f.Look()
	if age := time.Since(f.since); age > time.Minute {
		t.Errorf("a new file has the age %v", age)
	}
	if !strings.Contains(f.since.String(), " m=") {
		t.Errorf("the age is counted from %v, which has no reading of the monotonic clock", f.since)
	}
}
