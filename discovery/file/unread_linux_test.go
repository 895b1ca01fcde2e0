package file

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/internal/filewatch"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// limitFiles keeps the process from opening files until restore is called or the test ends. Tests
// that use it must not run in parallel.
func limitFiles(t *testing.T) (restore func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	restore = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	return restore
}

// A file is edited while the process cannot open files. The edit must take effect as soon as files
// can be opened again, and the problem must be logged once.
func TestAnEditThatCannotBeReadForAWhile(t *testing.T) {
	for what, lasts := range map[string]time.Duration{"a moment": 0, "an hour": time.Hour} {
		path := newPath(t)
		synctest.Test(t, func(t *testing.T) {
			write(t, path, onePort(1))
			c := watchFile(t, path, polled)
			c.expect(t, 1)
			write(t, path+".new", onePort(2))
			restore := limitFiles(t)
			rename(t, path+".new", path)
			const text = ": too many open files; the endpoints from before stay in use"
			logged.Wait(t, patient, path+text)
			pass(lasts)
			if n := logged.Count(path + text); n != 1 {
				t.Errorf("%s: the failure was logged %d times, want once", what, n)
			}
			restore()
			pass(longest)
			c.expect(t, 2)
			if len(c.errors) != 0 {
				t.Errorf("%s: the channel received the error %v although it had endpoints", what, <-c.errors)
			}
		})
	}
}

func TestAFileThatCannotBeReadAtFirst(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		write(t, path, onePort(1))
		restore := limitFiles(t)
		c := watchFile(t, path, polled)
		if got, want := c.nextError(t), "file: "+path+": too many open files"; got != want {
			t.Fatalf("error %q, want %q", got, want)
		}
		restore()
		began := time.Now()
		c.expect(t, 1)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the file was read after %v, want the first delay of the backoff", took)
		}
	})
}

type failures struct {
	answers
	count atomic.Int32
}

func (f *failures) Fail(error) { f.count.Add(1) }

// The pauses between attempts to read the file must grow. An edit must make them short again. A
// missing or invalid file must not be read again until it changes.
func TestHowOftenAFileIsReadAgain(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		write(t, path, onePort(1))
		restore := limitFiles(t)
		told := &failures{answers: make(answers, 1)}
		w, err := (&source{path: path, options: filewatch.Options{PollOnly: true}}).Start(flat.Receiver(told))
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if n := told.count.Load(); n < 30 || n > 60 {
			t.Errorf("there were %d attempts in an hour, want about 40", n)
		}
		before := told.count.Load()
		if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		if n := told.count.Load() - before; n < 4 {
			t.Errorf("there were %d attempts in 10 s after an edit, want those of a new beginning", n)
		}
		restore()
		pass(longest)
		if len(told.answers) != 1 {
			t.Error("the file was not read once it could be")
		}
		for what, change := range map[string]func(){
			"broken":  func() { write(t, path, "endpoints: [") },
			"removed": func() { rename(t, path, path+".away") },
		} {
			before := told.count.Load()
			change()
			pass(time.Hour)
			if n := told.count.Load() - before; n != 1 {
				t.Errorf("%s: %d failures were reported in an hour, want one", what, n)
			}
		}
		w.Close()
	})
}
