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
// lock until that goroutine has received an error. It therefore locks nothing.
type notifier struct {
	mu      sync.Mutex // held during calls of fsnotify
	watcher *fsnotify.Watcher
	dirs    sync.Map // of each *Watcher: its directories, a map[string]bool
}

var system notifier

// watch replaces the directories that the system watches for w, which needs none if dirs is nil. If
// the system allows no fsnotify.Watcher now, the next call tries again.
func (n *notifier) watch(w *Watcher, dirs map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, _ := n.dirs.Swap(w, dirs)
	if dirs == nil {
		n.dirs.Delete(w)
	}
	if n.watcher == nil && dirs != nil {
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
	if before, _ := before.(map[string]bool); n.watcher == nil || dirs != nil && maps.Equal(before, dirs) {
		return
	}
	used, last := make(map[string]bool), true
	n.dirs.Range(func(_, dirs any) bool {
		maps.Copy(used, dirs.(map[string]bool))
		last = false
		return true
	})
	for _, dir := range n.watcher.WatchList() {
		if !used[dir] {
			_ = n.watcher.Remove(dir)
		}
	}
	if last {
		_ = n.watcher.Close()
		n.watcher = nil
	}
}

// run wakes the Watchers that a change in a directory may concern, or all if events were lost.
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
		n.dirs.Range(func(w, of any) bool {
			if dirs := of.(map[string]bool); changed == "" || dirs[changed] || dirs[filepath.Dir(changed)] {
				select {
				case w.(*Watcher).wake <- struct{}{}:
				default:
				}
			}
			return true
		})
	}
}
