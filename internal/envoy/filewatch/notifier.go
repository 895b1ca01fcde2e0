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

// watch replaces the directories that the system watches for w, which needs none if dirs is nil. If
// the system allows no fsnotify.Watcher now, the next call tries again.
func (n *notifier) watch(w *Watcher, dirs watchedDirs) {
	n.fsnotifyMu.Lock()
	defer n.fsnotifyMu.Unlock()
	n.mu.Lock()
	before, used := n.dirs[w], make(watchedDirs)
	if n.dirs[w] = dirs; dirs == nil {
		delete(n.dirs, w)
	}
	if maps.Equal(before, dirs) {
		before = nil
	} else {
		for _, dirs := range n.dirs {
			maps.Copy(used, dirs)
		}
	}
	last := len(n.dirs) == 0
	n.mu.Unlock()
	switch {
	case n.watcher == nil && last:
		return
	case last:
		_ = n.watcher.Close()
		n.watcher = nil
		return
	case n.watcher == nil:
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			return
		}
		n.watcher = watcher
		go n.run(watcher)
	}
	for dir := range dirs {
		// Even if the directory is watched: another one may have replaced it, and the system may have
		// ended the watch without an event, for example because a file system was unmounted.
		_ = n.watcher.Add(dir)
	}
	for dir := range before {
		if _, ok := used[dir]; !ok {
			_ = n.watcher.Remove(dir)
		}
	}
}

func (n *notifier) run(notify *fsnotify.Watcher) {
	for {
		changed := ""
		select {
		case event, ok := <-notify.Events:
			if !ok {
				return
			}
			changed = filepath.Clean(event.Name)
		case err, ok := <-notify.Errors:
			if !ok {
				return
			}
			logger.Infof("watching files: %v", err)
		}
		n.wake(changed)
	}
}

// wake wakes the Watchers that a change at a path may concern. If the path is "", events were lost.
func (n *notifier) wake(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w, dirs := range n.dirs {
		name, ok := dirs[filepath.Dir(path)]
		_, isDir := dirs[path]
		if path == "" || isDir || ok && (name == "" || name == filepath.Base(path)) {
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}
