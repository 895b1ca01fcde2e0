package serve

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a directory has to be quiet before its files are read: an
// editor, or the kubelet, does several things in a row. pollEvery is for file
// systems that report nothing.
const (
	settle    = 20 * time.Millisecond
	pollEvery = 5 * time.Second
)

// watcher says when files may have changed. It watches directories, since files are
// replaced rather than written.
type watcher struct {
	notify *fsnotify.Watcher
	log    *slog.Logger
}

func newWatcher(directories []string, log *slog.Logger) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching files: %w", err)
	}
	for _, directory := range directories {
		if err := notify.Add(directory); err != nil {
			log.Warn("directory cannot be watched, and is looked at every 5 s", "directory", directory, "error", err.Error())
		}
	}
	return &watcher{notify, log}, nil
}

func (w *watcher) close() { _ = w.notify.Close() }

// run calls changed whenever files may have changed, until ctx ends.
func (w *watcher) run(ctx context.Context, changed func()) {
	defer w.close()
	timer := time.NewTimer(0) // what changed since the files were loaded
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.notify.Events:
			timer.Reset(settle)
		case err := <-w.notify.Errors:
			w.log.Warn("watching files", "error", err.Error())
			timer.Reset(settle)
		case <-timer.C:
			changed()
			timer.Reset(pollEvery)
		}
	}
}
