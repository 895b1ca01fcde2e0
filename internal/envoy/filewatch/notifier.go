package filewatch

import (
	"maps"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// notifier shares one fsnotify.Watcher among all Watchers of the process, because Linux limits the
// number of notifiers to 128 per user. The fsnotify.Watcher exists while there is a Watcher.
//
// The goroutine that receives events must never wait for a call of fsnotify: such a call may hold a
// lock until that goroutine has received an error. It therefore never locks fsnotifyMu, which is
// held during calls of fsnotify.
type notifier struct {
	fsnotifyMu sync.Mutex // held during calls of fsnotify; locked before mu
	watcher    *fsnotify.Watcher

	mu   sync.Mutex
	dirs map[*Watcher]watchedDirs
}

// watchedDirs has directories. The value is the name of the only entry that matters, or "" if every
// entry does.
type watchedDirs map[string]string

var system = notifier{dirs: make(map[*Watcher]watchedDirs)}

// watch replaces the directories that the system watches for w. If the system allows no
// fsnotify.Watcher now, the next call tries again.
func (n *notifier) watch(w *Watcher, dirs watchedDirs) {
	n.fsnotifyMu.Lock()
	defer n.fsnotifyMu.Unlock()
	n.mu.Lock()
	changed := !maps.Equal(n.dirs[w], dirs)
	if n.dirs[w] = dirs; dirs == nil {
		delete(n.dirs, w)
	}
	watchers := len(n.dirs)
	n.mu.Unlock()
	switch {
	case watchers == 0 && n.watcher == nil:
		return
	case watchers == 0:
		_ = n.watcher.Close()
		n.watcher = nil
		return
	case n.watcher == nil:
		var err error
		if n.watcher, err = fsnotify.NewWatcher(); err != nil {
			n.watcher = nil
			return
		}
		go n.run(n.watcher)
	}
	for dir := range dirs {
		// Even if the directory is watched: another one may have replaced it, and the system may have
		// ended the watch without an event, for example because a file system was unmounted.
		_ = n.watcher.Add(dir)
	}
	if changed {
		n.unwatchUnused()
	}
}

func (n *notifier) unwatchUnused() {
	used := make(watchedDirs)
	n.mu.Lock()
	for _, dirs := range n.dirs {
		maps.Copy(used, dirs)
	}
	n.mu.Unlock()
	for _, dir := range n.watcher.WatchList() {
		if _, ok := used[dir]; !ok {
			_ = n.watcher.Remove(dir)
		}
	}
}

func (n *notifier) run(notify *fsnotify.Watcher) {
	events, errors := notify.Events, notify.Errors
	for events != nil {
		select {
		case event, ok := <-events:
			if !ok {
				return
			}
			n.wake(func(dirs watchedDirs) bool { return dirs.concern(filepath.Clean(event.Name)) })
		case err, ok := <-errors:
			if !ok {
				errors = nil
				continue
			}
			logger.Infof("watching files: %v", err)
			n.wake(func(watchedDirs) bool { return true })
		}
	}
}

func (n *notifier) wake(concerns func(watchedDirs) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w, dirs := range n.dirs {
		if concerns(dirs) {
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}

// concern reports whether a change at a path may affect the directories.
func (d watchedDirs) concern(path string) bool {
	name, ok := d[filepath.Dir(path)]
	_, isDir := d[path]
	return isDir || ok && (name == "" || name == filepath.Base(path))
}
