package filewatch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/testleak"
)

func TestMain(m *testing.M) { testleak.Main(m) }

const noticeTimeout = 30 * time.Second

func newUnpolled(t *testing.T, paths ...string) *Watcher {
	t.Helper()
	w := New(Options{}, paths...)
	w.ticker.Stop()
	t.Cleanup(w.Close)
	return w
}

// poll does what Wait does after pollInterval.
func poll(w *Watcher) { w.updateWatches() }

// waitForNotice waits until an unpolled Watcher notices a change.
func waitForNotice(t *testing.T, w *Watcher, what string) {
	t.Helper()
	done := make(chan struct{})
	timer := time.AfterFunc(noticeTimeout, func() { close(done) })
	defer timer.Stop()
	if !w.Wait(done, nil) {
		t.Fatalf("%s: no notice within %v", what, noticeTimeout)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	must(t, os.Mkdir(path, 0o700))
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func switchLink(t *testing.T, target, link string) {
	t.Helper()
	must(t, os.Symlink(target, link+".new"))
	must(t, os.Rename(link+".new", link))
}

func TestReplacedDirectoryIsWatched(t *testing.T) {
	base := t.TempDir()
	dir := mkdir(t, filepath.Join(base, "dir"))
	w := newUnpolled(t, dir)
	write(t, filepath.Join(dir, "a"), "1")
	waitForNotice(t, w, "a file in the first directory")
	must(t, os.Rename(dir, dir+".old"))
	waitForNotice(t, w, "the directory goes")
	mkdir(t, dir)
	waitForNotice(t, w, "another comes")
	write(t, filepath.Join(dir, "a"), "2")
	waitForNotice(t, w, "a file in the other directory")
	must(t, os.RemoveAll(dir))
	waitForNotice(t, w, "it is removed")
	mkdir(t, dir) // the new directory may get the inode number of the removed one
	waitForNotice(t, w, "a third comes")
	write(t, filepath.Join(dir, "a"), "3")
	waitForNotice(t, w, "a file in the third directory")
}

func TestSwitchedLinkIsFollowed(t *testing.T) {
	base := t.TempDir()
	one, two := mkdir(t, filepath.Join(base, "one")), mkdir(t, filepath.Join(base, "two"))
	link := filepath.Join(base, "link")
	switchLink(t, one, link)
	for what, path := range map[string]string{"the directory": link, "a file in it": filepath.Join(link, "a")} {
		switchLink(t, "one", link)
		w := newUnpolled(t, path)
		write(t, filepath.Join(one, "a"), "1")
		waitForNotice(t, w, what+": a write")
		switchLink(t, "two", link)
		poll(w)
		write(t, filepath.Join(two, "a"), "2")
		waitForNotice(t, w, what+": a write after the switch")
	}
}

// The parent of a watched directory is replaced, for which the system sends no event.
func TestReplacedAncestor(t *testing.T) {
	base := t.TempDir()
	parent := mkdir(t, filepath.Join(base, "up"))
	dir := mkdir(t, filepath.Join(parent, "dir"))
	w := newUnpolled(t, dir)
	other := mkdir(t, filepath.Join(base, "other"))
	mkdir(t, filepath.Join(other, "dir"))
	must(t, os.Rename(parent, parent+".old"))
	must(t, os.Rename(other, parent))
	poll(w)
	write(t, filepath.Join(dir, "a"), "1")
	waitForNotice(t, w, "a file in the directory below the new one")
}

func TestLinkIntoAnotherDirectory(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	write(t, target, "1")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(target, link))
	w := newUnpolled(t, link)
	write(t, target, "2")
	waitForNotice(t, w, "a write to what the link leads to")
}

func TestMissingPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later", "endpoints.yaml")
	w := newUnpolled(t, path)
	mkdir(t, filepath.Dir(path))
	poll(w)
	write(t, path, "1")
	waitForNotice(t, w, "the file comes")
}

func writeRepeatedly(t *testing.T, path string) (stop func()) {
	t.Helper()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				_ = os.WriteFile(path, []byte("x"), 0o600)
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

func TestBusyNeighbour(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "a")
	inDirectory, inFile, elsewhere := newUnpolled(t, dir), newUnpolled(t, file), newUnpolled(t, filepath.Join(other, "a"))
	stop := writeRepeatedly(t, filepath.Join(dir, "neighbour"))
	defer stop()
	waitForNotice(t, inDirectory, "the neighbour")
	write(t, file+".new", "1")
	must(t, os.Rename(file+".new", file)) // causes a single event
	waitForNotice(t, inDirectory, "the directory")
	waitForNotice(t, inFile, "the file")
	for range 3 {
		waitForNotice(t, inDirectory, "the neighbour")
	}
	if len(elsewhere.wake) != 0 {
		t.Error("a Watcher was notified of another directory")
	}
}

func TestCircularLink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	must(t, os.Symlink("link", link))
	w := newUnpolled(t, link)
	must(t, os.Remove(link))
	waitForNotice(t, w, "the link goes")
}

func TestPollOnly(t *testing.T) {
	w := New(Options{PollOnly: true}, t.TempDir())
	defer w.Close()
	for range 3 {
		if !w.Wait(nil, nil) {
			t.Error("Wait returned false")
		}
	}
	done := make(chan struct{})
	close(done)
	if w.Wait(done, nil) {
		t.Error("Wait returned true after done was closed")
	}
}
