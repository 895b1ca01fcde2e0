package file

import (
	"io/fs"
	"os"

	"github.com/understudy-lb/understudy/internal/filewatch"
)

// watcher tells when a file may have changed. It is not safe for concurrent use.
type watcher struct {
	path  string
	watch *filewatch.Watcher
	last  fs.FileInfo // nil if there is no file
}

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
		noticed, ok := w.watch.Wait(done)
		if !ok {
			return false
		}
		if w.changed() || noticed {
			return true
		}
	}
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
