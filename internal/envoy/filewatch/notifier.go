package filewatch

import (
	"path/filepath"
	"sync"
	"time"

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
	lastAudit  time.Time

	mu          sync.Mutex
	watchers    map[*Watcher]bool
	subscribers map[dirEntry]map[*Watcher]bool // the Watchers to notify of each entry
	watched     map[string]*watchedDir         // the directories that the system watches
}

var system = notifier{
	watchers:    make(map[*Watcher]bool),
	subscribers: make(map[dirEntry]map[*Watcher]bool),
	watched:     make(map[string]*watchedDir),
}

// dirEntry is a directory and the name of one of its entries, or one of the special names below.
type dirEntry struct{ dir, name string }

const (
	anyEntry  = ""  // any entry of the directory
	dirItself = "." // the directory itself
)

func (p watchedDirs) entries() map[dirEntry]bool {
	entries := make(map[dirEntry]bool)
	for dir, place := range p {
		entries[dirEntry{dir, dirItself}] = true
		if place.all {
			entries[dirEntry{dir, anyEntry}] = true
		}
		for name := range place.names {
			entries[dirEntry{dir, name}] = true
		}
	}
	return entries
}

// register adds w to the notifier. If the system does not allow an fsnotify.Watcher now,
// updateWatches tries again later.
func (n *notifier) register(w *Watcher) {
	n.fsnotifyMu.Lock()
	defer n.fsnotifyMu.Unlock()
	n.mu.Lock()
	n.watchers[w] = true
	n.mu.Unlock()
	n.start()
}

// start creates the fsnotify.Watcher if it does not exist. The caller must hold fsnotifyMu.
func (n *notifier) start() {
	if n.watcher != nil {
		return
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return
	}
	n.watcher = notify
	go n.run(notify)
}

func (n *notifier) unregister(w *Watcher) {
	n.fsnotifyMu.Lock()
	defer n.fsnotifyMu.Unlock()
	n.mu.Lock()
	delete(n.watchers, w)
	n.subscribe(w, w.dirs.entries(), nil)
	last := len(n.watchers) == 0
	n.mu.Unlock()
	if n.watcher == nil {
		return
	}
	if last {
		_ = n.watcher.Close()
		n.watcher = nil
		n.mu.Lock()
		clear(n.watched)
		n.mu.Unlock()
		return
	}
	n.unwatchUnused(w.dirs)
}

func (n *notifier) run(notify *fsnotify.Watcher) {
	events, errors := notify.Events, notify.Errors
	for events != nil {
		select {
		case event, ok := <-events:
			if !ok {
				return
			}
			n.dispatch(event)
		case err, ok := <-errors:
			if !ok {
				errors = nil
				continue
			}
			logger.Infof("watching files: %v", err)
			n.notifyAll()
		}
	}
}

func (n *notifier) dispatch(event fsnotify.Event) {
	what := Changed
	switch {
	case event.Has(fsnotify.Write):
		what = Written
	case event.Has(fsnotify.Create):
		what = Moved
	case event.Has(fsnotify.Remove), event.Has(fsnotify.Rename):
		n.mu.Lock()
		delete(n.watched, event.Name)
		n.mu.Unlock()
	}
	dir, name := filepath.Dir(event.Name), filepath.Base(event.Name)
	entry := dirEntry{dir, name}
	n.notifySubscribers(dirEntry{event.Name, dirItself}, what, dirEntry{})
	n.notifySubscribers(entry, what, entry)
	n.notifySubscribers(dirEntry{dir, anyEntry}, what, entry)
}

func (n *notifier) notifyAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.watchers {
		w.notify(Changed, dirEntry{})
	}
}

// updateWatches replaces the directories that the system watches for w. If a directory was replaced
// by another one, the system then watches the new one. updateWatches returns true if changes may
// have been missed. The caller must then determine the directories again.
func (n *notifier) updateWatches(w *Watcher, dirs watchedDirs) bool {
	n.fsnotifyMu.Lock()
	defer n.fsnotifyMu.Unlock()
	if n.start(); n.watcher == nil {
		return false
	}
	n.audit()
	n.mu.Lock()
	before := w.dirs
	added := n.subscribe(w, before.entries(), dirs.entries())
	w.dirs = dirs
	n.mu.Unlock()
	for dir, place := range dirs {
		added = n.watchDir(dir, place) || added
	}
	n.unwatchUnused(before)
	return added
}

// subscribe replaces the entries of which w is notified, and reports whether there are new ones.
// The caller must hold mu.
func (n *notifier) subscribe(w *Watcher, before, entries map[dirEntry]bool) (added bool) {
	for s := range before {
		if !entries[s] {
			if delete(n.subscribers[s], w); len(n.subscribers[s]) == 0 {
				delete(n.subscribers, s)
			}
		}
	}
	for s := range entries {
		if n.subscribers[s] == nil {
			n.subscribers[s] = make(map[*Watcher]bool)
		}
		if !n.subscribers[s][w] {
			n.subscribers[s][w], added = true, true
		}
	}
	return added
}

// watchDir makes the system watch a directory, and reports whether the watch is new. The caller
// must hold fsnotifyMu.
func (n *notifier) watchDir(dir string, current *watchedDir) bool {
	n.mu.Lock()
	before := n.watched[dir]
	n.mu.Unlock()
	if before.sameDir(current) {
		return false
	}
	rewatched := n.watcher.Remove(dir) == nil // between Remove and Add, changes may be missed
	n.mu.Lock()
	n.watched[dir] = current // set before Add, because the system may end the watch during Add
	n.mu.Unlock()
	if n.watcher.Add(filepath.Clean(dir)) == nil {
		if rewatched {
			n.notifySubscribers(dirEntry{dir, dirItself}, Changed, dirEntry{})
		}
		return true
	}
	n.mu.Lock()
	delete(n.watched, dir)
	n.mu.Unlock()
	return false
}

func (n *notifier) notifySubscribers(s dirEntry, what Notice, entry dirEntry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.subscribers[s] {
		w.notify(what, entry)
	}
}

// unwatchUnused ends the watches on those of the directories that no Watcher needs any more. The
// caller must hold fsnotifyMu.
func (n *notifier) unwatchUnused(before watchedDirs) {
	for dir := range before {
		n.mu.Lock()
		unused := n.watched[dir] != nil && len(n.subscribers[dirEntry{dir, dirItself}]) == 0
		if unused {
			delete(n.watched, dir)
		}
		n.mu.Unlock()
		if unused {
			_ = n.watcher.Remove(dir)
		}
	}
}

// audit removes watches that the system has ended without an event, for example because a file
// system was unmounted. The caller must hold fsnotifyMu.
func (n *notifier) audit() {
	if time.Since(n.lastAudit) < pollInterval {
		return
	}
	n.lastAudit = time.Now()
	listed := make(map[string]bool)
	for _, dir := range n.watcher.WatchList() {
		listed[dir] = true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for dir := range n.watched {
		if !listed[dir] {
			delete(n.watched, dir)
		}
	}
}
