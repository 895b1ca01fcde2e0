package filewatch

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/fsnotify/fsnotify"
)

func TestOverflowIsReportedToAllWatchers(t *testing.T) {
	one, two := newUnpolled(t, t.TempDir()), newUnpolled(t, t.TempDir())
	system.watcher.Errors <- fsnotify.ErrEventOverflow
	waitForNotice(t, one, "an overflow")
	waitForNotice(t, two, "an overflow")
}

func TestUnusedDirectoryIsUnwatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	one, two := newUnpolled(t, path), New(path)
	two.Close()
	write(t, path, "1")
	waitForNotice(t, one, "the file comes")
	one.Close()
	if len(system.watchers)+len(system.subscribers)+len(system.watched) != 0 || system.watcher != nil {
		t.Errorf("%d watchers, %d spots and %d directories remain", len(system.watchers), len(system.subscribers), len(system.watched))
	}
}

func TestLostWatchIsRestored(t *testing.T) {
	dir := t.TempDir()
	w := New(filepath.Join(dir, "a"))
	defer w.Close()
	must(t, system.watcher.Remove(dir))
	for range 3 {
		if _, ok := w.Wait(nil, nil); !ok {
			t.Fatal("Wait returned false")
		}
	}
	w.ticker.Stop()
	write(t, filepath.Join(dir, "a"), "1")
	waitForNotice(t, w, "the file comes")
}

func TestNoticeOfMoveAndWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	w := newUnpolled(t, path)
	expect := func(what string, want Notice) {
		t.Helper()
		for waitForNotice(t, w, what) != want { // on a slow machine, a write may cause several notices
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

// The Notice must be the kind of the last event. Events of an unknown kind are ignored, unless
// there are no others.
func TestNoticeOfSeveralEvents(t *testing.T) {
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
				w.notify(event, dirEntry{"/dir", "a"})
			}
			if got, ok := w.Wait(nil, nil); got != test.want || !ok {
				t.Errorf("%v: notice %v, ok %v, want %v", test.events, got, ok, test.want)
			}
		})
	}
}
