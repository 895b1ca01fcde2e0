package filewatch

import (
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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
	one, two := newUnpolled(t, path), New(Options{}, path)
	two.Close()
	write(t, path, "1")
	waitForNotice(t, one, "the file comes")
	one.Close()
	if system.watcher != nil {
		t.Errorf("the system still watches %v", system.watcher.WatchList())
	}
}

func TestWatcherWithoutDirectoriesIsClosed(t *testing.T) {
	New(Options{}, filepath.Join(t.TempDir(), "none", "a")).Close()
	if system.watcher != nil {
		t.Error("the system's notifications were not ended")
	}
}

func TestLostWatchIsRestored(t *testing.T) {
	dir := t.TempDir()
	w := New(Options{}, filepath.Join(dir, "a"))
	defer w.Close()
	must(t, system.watcher.Remove(dir))
	for range 3 {
		if !w.Wait(nil, nil) {
			t.Fatal("Wait returned false")
		}
	}
	w.ticker.Stop()
	write(t, filepath.Join(dir, "a"), "1")
	waitForNotice(t, w, "the file comes")
}

// A directory that no Watcher needs any more must not be watched while there are other Watchers.
func TestDirectoryOfClosedWatcherIsUnwatched(t *testing.T) {
	dir := t.TempDir()
	newUnpolled(t, t.TempDir())
	New(Options{}, filepath.Join(dir, "a")).Close()
	if slices.Contains(system.watcher.WatchList(), dir) {
		t.Errorf("%s is still watched", dir)
	}
}

// Constant changes must not delay the next look at the paths.
func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{PollOnly: true})
		defer w.Close()
		begin := time.Now()
		done, ended := make(chan struct{}), make(chan struct{})
		defer func() {
			close(done)
			<-ended
		}()
		go func() {
			defer close(ended)
			for {
				select {
				case w.wake <- struct{}{}:
					time.Sleep(time.Millisecond)
				case <-done:
					return
				}
			}
		}()
		synctest.Wait()
		if w.Wait(nil, nil); time.Since(begin) > quietPeriod {
			t.Errorf("Wait returned after %v", time.Since(begin))
		}
	})
}
