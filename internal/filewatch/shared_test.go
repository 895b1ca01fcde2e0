package filewatch

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/fsnotify/fsnotify"
)

func TestEverybodyIsToldThatEventsAreLost(t *testing.T) {
	one, two := alone(t, t.TempDir()), alone(t, t.TempDir())
	system.notify.Errors <- fsnotify.ErrEventOverflow
	noticed(t, one, "an overflow")
	noticed(t, two, "an overflow")
}

func TestADirectoryIsWatchedUntilNobodyWantsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	one, two := alone(t, path), New(path)
	two.Close()
	write(t, path, "1")
	noticed(t, one, "the file comes")
	one.Close()
	if len(system.watchers)+len(system.concerned)+len(system.armed) != 0 || system.notify != nil {
		t.Errorf("%d watchers, %d spots and %d directories remain", len(system.watchers), len(system.concerned), len(system.armed))
	}
}

func TestAWatchThatIsLost(t *testing.T) {
	dir := t.TempDir()
	w := New(filepath.Join(dir, "a"))
	defer w.Close()
	must(t, system.notify.Remove(dir))
	for range 3 {
		if _, ok := w.Wait(nil, nil); !ok {
			t.Fatal("Wait returned false")
		}
	}
	w.ticker.Stop()
	write(t, filepath.Join(dir, "a"), "1")
	noticed(t, w, "the file comes")
}

func TestWhatWasMovedAndWhatIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	w := alone(t, path)
	expect := func(what string, want Notice) {
		t.Helper()
		for noticed(t, w, what) != want { // on a slow machine, the events of a write come one by one
		}
	}
	write(t, path, "1")
	expect("a new file", Written)
	write(t, path+".new", "2")
	must(t, os.Rename(path+".new", path))
	expect("a rename", Moved)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteString("3") // causes a single event
	must(t, err)
	expect("a write", Written)
	must(t, os.Remove(path))
	expect("a removal", Changed)
}

// A Notice is the kind of the last event. An event of an unknown kind must not change it.
func TestANoticeOfSeveralEvents(t *testing.T) {
	for _, test := range []struct {
		events []Notice
		want   Notice
	}{
		{[]Notice{Moved, Written, Written}, Written}, // a new file
		{[]Notice{Written, Moved}, Moved},
		{[]Notice{Moved, Changed}, Moved},
		{[]Notice{Changed, Written}, Written},
		{[]Notice{Changed}, Changed},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := NewWith(Options{PollOnly: true}, "/dir/a")
			defer w.Close()
			for _, event := range test.events {
				w.tell(event, spot{"/dir", "a"})
			}
			if got, ok := w.Wait(nil, nil); got != test.want || !ok {
				t.Errorf("%v: notice %v, ok %v, want %v", test.events, got, ok, test.want)
			}
		})
	}
}
