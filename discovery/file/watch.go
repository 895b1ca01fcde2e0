package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// pollInterval is how often a file is looked at, whatever the system notifies: it
	// says nothing about some file systems, nor about what a link points to, nor
	// where the limit of watches is reached.
	pollInterval = 500 * time.Millisecond
	// quiet is how long a file must be left alone before it is read, so that one that
	// is written piece by piece is read once, when it is complete.
	quiet = 50 * time.Millisecond
	// patience is how long quiet is waited for.
	patience = 300 * time.Millisecond
)

// watcher tells when a file may have changed. It is not safe for concurrent use.
type watcher struct {
	path   string
	notify *fsnotify.Watcher // of the directory, to see files that take its place; nil if there is none
	ticker *time.Ticker
	last   fs.FileInfo // nil if there is no file
}

// newWatcher watches from now on.
func newWatcher(path string) *watcher {
	w := &watcher{path: path, ticker: time.NewTicker(pollInterval)}
	if notify, err := fsnotify.NewWatcher(); err == nil {
		w.notify = notify
	}
	w.watchDirectory()
	w.changed()
	return w
}

func (w *watcher) close() {
	w.ticker.Stop()
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

// watchDirectory asks for notice of changes, if that was not done or was undone when
// the directory went away.
func (w *watcher) watchDirectory() {
	if w.notify != nil && len(w.notify.WatchList()) == 0 {
		_ = w.notify.Add(filepath.Dir(w.path)) // where it fails, there is the ticker
	}
}

// wait returns true once the file may have changed, and false once done is closed.
func (w *watcher) wait(done <-chan struct{}) bool {
	for {
		select {
		case <-done:
			return false
		case event := <-w.events():
			if !w.concerns(event) {
				continue
			}
		case err := <-w.errors(): // events may have been lost
			logger.Infof("file: %s: %v", w.path, err)
		case <-w.ticker.C:
			w.watchDirectory()
			if !w.changed() {
				continue
			}
		}
		return w.settle(done)
	}
}

// settle returns true once the file is quiet, and false once done is closed.
func (w *watcher) settle(done <-chan struct{}) bool {
	still, enough := time.NewTimer(quiet), time.After(patience)
	defer still.Stop()
	for {
		select {
		case <-done:
			return false
		case event := <-w.events():
			if w.concerns(event) {
				still.Reset(quiet)
			}
			continue
		case <-still.C:
		case <-enough:
		}
		w.changed()
		return true
	}
}

// concerns returns whether the file may have changed with event, which is about it or
// a neighbour. What a neighbour can change is where the file's links lead.
func (w *watcher) concerns(event fsnotify.Event) bool {
	return filepath.Base(event.Name) == filepath.Base(w.path) || w.changed()
}

// changed returns whether the file is another, or has another size or time, than at
// the last call.
func (w *watcher) changed() bool {
	last := w.last
	info, err := os.Stat(w.path)
	if err != nil {
		w.last = nil
		return last != nil
	}
	w.last = info
	return last == nil || !os.SameFile(last, info) || last.Size() != info.Size() || !last.ModTime().Equal(info.ModTime())
}

// events returns where notice comes from, nil if from nowhere.
func (w *watcher) events() <-chan fsnotify.Event {
	if w.notify == nil {
		return nil
	}
	return w.notify.Events
}

func (w *watcher) errors() <-chan error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Errors
}
