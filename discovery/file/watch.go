package file

import (
	"io/fs"
	"os"
	"time"

	"github.com/understudy-lb/understudy/internal/filewatch"
)

// watcher tells when a file may have changed. It is not safe for concurrent use.
type watcher struct {
	path  string
	watch *filewatch.Watcher
	last  fs.FileInfo // nil if there is no file
	since time.Time   // when last was first seen, zero once it was read a step later
}

// step is that of the coarsest clock of a file system. Of two writes within a step the
// second may leave both the size and the time of the file as they were.
const step = 2 * time.Second

// newWatcher watches from now on.
func newWatcher(path string, options filewatch.Options) *watcher {
	w := &watcher{path: path, watch: filewatch.NewWith(options, path)}
	w.changed()
	return w
}

func (w *watcher) close() { w.watch.Close() }

// wait returns true once the file may have changed, and false once done is closed.
func (w *watcher) wait(done <-chan struct{}) bool {
	for {
		noticed, ok := w.watch.Wait(done, nil)
		if !ok {
			return false
		}
		if w.changed() || noticed != filewatch.Looked {
			return true
		}
	}
}

// changed returns whether the file is another, or has another size or time, than at
// the last call. It does so once more after a step, for what was written after the file
// was read.
func (w *watcher) changed() bool {
	last := w.last
	info, err := os.Stat(w.path)
	if err != nil {
		w.last, w.since = nil, time.Time{}
		return last != nil
	}
	w.last = info
	if last == nil || !os.SameFile(last, info) || last.Size() != info.Size() || !last.ModTime().Equal(info.ModTime()) {
		w.since = time.Now()
		return true
	}
	if w.since.IsZero() || time.Since(w.since) <= step {
		return false
	}
	w.since = time.Time{}
	return true
}
