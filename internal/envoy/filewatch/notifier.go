package filewatch

import (
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

var system = notifier{dirs: make(map[*Watcher]watchedDirs)}

// watch replaces the directories that the system watches for w. It returns true if there are new
// ones, in which changes may have been missed: the caller must then determine the directories again.
// If the system allows no fsnotify.Watcher now, the next call tries again.
func (n *notifier) watch(w *Watcher, dirs watchedDirs) (added bool) {
	n.fsnotifyMu.Lock()
	defer n.fsnotifyMu.Unlock()
	if n.watcher == nil {
		var err error
		if n.watcher, err = fsnotify.NewWatcher(); err != nil {
			n.watcher = nil
			return false
		}
		go n.run(n.watcher)
	}
	n.mu.Lock()
	before := n.dirs[w]
	n.dirs[w] = dirs
	n.mu.Unlock()
	for dir := range dirs {
		added = added || before[dir] == nil
		// Even if the directory is watched: another one may have replaced it, and the system may have
		// ended the watch without an event, for example because a file system was unmounted.
		_ = n.watcher.Add(dir)
	}
	n.unwatchUnused(before)
	return added
}

func (n *notifier) remove(w *Watcher) {
	n.fsnotifyMu.Lock()
	defer n.fsnotifyMu.Unlock()
	n.mu.Lock()
	before := n.dirs[w]
	delete(n.dirs, w)
	last := len(n.dirs) == 0
	n.mu.Unlock()
	if !last {
		n.unwatchUnused(before)
	} else if n.watcher != nil {
		_ = n.watcher.Close()
		n.watcher = nil
	}
}

// unwatchUnused ends the watches on those of the directories that no Watcher needs any more. The
// caller must hold fsnotifyMu.
func (n *notifier) unwatchUnused(before watchedDirs) {
	for dir := range before {
		if !n.anyWatcher(func(dirs watchedDirs) bool { return dirs[dir] != nil }) {
			_ = n.watcher.Remove(dir)
		}
	}
}

func (n *notifier) anyWatcher(uses func(watchedDirs) bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, dirs := range n.dirs {
		if uses(dirs) {
			return true
		}
	}
	return false
}

func (n *notifier) run(notify *fsnotify.Watcher) {
	events, errors := notify.Events, notify.Errors
	for events != nil {
		select {
		case event, ok := <-events:
			if !ok {
				return
			}
			path := filepath.Clean(event.Name)
			n.wake(func(dirs watchedDirs) bool { return dirs.concern(path) })
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
