package filewatch

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// notifier is the one instance of the system's notifier that the process has, however many
// files it watches: Linux gives a user 128. There is one while somebody watches.
//
// Whoever takes what fsnotify says must never wait for somebody who calls it: fsnotify
// complains of some directories with its own lock held, and waits until that is heard. So
// there are two locks. The one that is held over calls of fsnotify is not needed to hear it.
type notifier struct {
	arming  sync.Mutex // held over calls of fsnotify, and before mu
	notify  *fsnotify.Watcher
	audited time.Time // when armed was last compared with what fsnotify says

	mu        sync.Mutex
	watchers  map[*Watcher]bool
	concerned map[spot]map[*Watcher]bool
	armed     map[string]*place // the directories that are watched
}

var system = notifier{
	watchers:  make(map[*Watcher]bool),
	concerned: make(map[spot]map[*Watcher]bool),
	armed:     make(map[string]*place),
}

// spot is where something may happen that matters: an entry of a directory.
type spot struct{ dir, name string }

// Two names that no entry has.
const (
	anyEntry = ""  // all entries of the directory
	itself   = "." // the directory
)

// spots returns those of the places.
func (p places) spots() map[spot]bool {
	all := make(map[spot]bool)
	for dir, place := range p {
		all[spot{dir, itself}] = true
		if place.all {
			all[spot{dir, anyEntry}] = true
		}
		for name := range place.names {
			all[spot{dir, name}] = true
		}
	}
	return all
}

// join has w told of what the system tells, if the system has a notifier to give.
func (n *notifier) join(w *Watcher) {
	n.arming.Lock()
	defer n.arming.Unlock()
	n.mu.Lock()
	n.watchers[w] = true
	n.mu.Unlock()
	n.begin()
}

// begin begins to hear the system. The lock for calls is held.
func (n *notifier) begin() {
	if n.notify != nil {
		return
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return
	}
	n.notify = notify
	go n.run(notify)
}

// leave undoes join. The last one to leave ends the watch.
func (n *notifier) leave(w *Watcher) {
	n.arming.Lock()
	defer n.arming.Unlock()
	n.mu.Lock()
	delete(n.watchers, w)
	n.concern(w, w.places.spots(), nil)
	last := len(n.watchers) == 0
	n.mu.Unlock()
	if n.notify == nil {
		return
	}
	if last {
		_ = n.notify.Close()
		n.notify = nil
		n.mu.Lock()
		clear(n.armed)
		n.mu.Unlock()
		return
	}
	n.disarm(w.places)
}

// run hears what the system says, until the notifier is closed.
func (n *notifier) run(notify *fsnotify.Watcher) {
	events, errors := notify.Events, notify.Errors
	for events != nil {
		select {
		case event, ok := <-events:
			if !ok {
				return
			}
			n.tell(event)
		case err, ok := <-errors:
			if !ok {
				errors = nil
				continue
			}
			logger.Infof("watching files: %v", err)
			n.tellAll() // events may have been lost
		}
	}
}

// tell tells those whom an event concerns.
func (n *notifier) tell(event fsnotify.Event) {
	what := Changed
	switch {
	case event.Has(fsnotify.Write):
		what = Written
	case event.Has(fsnotify.Create):
		what = Moved
	case event.Has(fsnotify.Remove), event.Has(fsnotify.Rename):
		n.mu.Lock()
		delete(n.armed, event.Name) // the watch has gone with the directory
		n.mu.Unlock()
	}
	dir, name := filepath.Dir(event.Name), filepath.Base(event.Name)
	entry := spot{dir, name}
	n.tellOf(spot{event.Name, itself}, what, spot{})
	n.tellOf(entry, what, entry)
	n.tellOf(spot{dir, anyEntry}, what, entry)
}

func (n *notifier) tellAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.watchers {
		w.tell(Changed, spot{})
	}
}

// follow has w told of what happens at these places, and no others. It reports whether they
// should be looked for again: a watch is new, and what moved before it was not heard of. A
// directory that was replaced has the path of the old one, and needs a new watch.
func (n *notifier) follow(w *Watcher, wanted places) bool {
	n.arming.Lock()
	defer n.arming.Unlock()
	if n.begin(); n.notify == nil {
		return false
	}
	n.audit()
	n.mu.Lock()
	before := w.places
	added := n.concern(w, before.spots(), wanted.spots())
	w.places = wanted
	n.mu.Unlock()
	for dir, place := range wanted {
		added = n.arm(dir, place) || added
	}
	n.disarm(before)
	return added
}

// concern has w told of these spots, in place of those before. It reports whether there are
// more of them. The lock is held.
func (n *notifier) concern(w *Watcher, before, now map[spot]bool) (more bool) {
	for s := range before {
		if !now[s] {
			if delete(n.concerned[s], w); len(n.concerned[s]) == 0 {
				delete(n.concerned, s)
			}
		}
	}
	for s := range now {
		if n.concerned[s] == nil {
			n.concerned[s] = make(map[*Watcher]bool)
		}
		if !n.concerned[s][w] {
			n.concerned[s][w], more = true, true
		}
	}
	return more
}

// arm watches a directory, unless it is watched. It reports whether the watch is new. The lock
// for calls is held.
func (n *notifier) arm(dir string, now *place) bool {
	n.mu.Lock()
	before := n.armed[dir]
	n.mu.Unlock()
	if before.same(now) {
		return false
	}
	gap := n.notify.Remove(dir) == nil // it has a watch, which may be that of another directory
	n.mu.Lock()
	n.armed[dir] = now // before the watch, which may be gone as soon as it is there
	n.mu.Unlock()
	if n.notify.Add(filepath.Clean(dir)) == nil {
		if gap {
			n.tellOf(spot{dir, itself}, Changed, spot{})
		}
		return true
	}
	n.mu.Lock()
	delete(n.armed, dir)
	n.mu.Unlock()
	return false
}

// tellOf tells those who are concerned, and of which entry of a directory.
func (n *notifier) tellOf(s spot, what Notice, entry spot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.concerned[s] {
		w.tell(what, entry)
	}
}

// disarm ends the watch of those of the directories that concern nobody any more. The lock
// for calls is held.
func (n *notifier) disarm(before places) {
	for dir := range before {
		n.mu.Lock()
		gone := n.armed[dir] != nil && len(n.concerned[spot{dir, itself}]) == 0
		if gone {
			delete(n.armed, dir)
		}
		n.mu.Unlock()
		if gone {
			_ = n.notify.Remove(dir)
		}
	}
}

// audit forgets watches that the system has ended without a word, as where a file system was
// unmounted. The lock for calls is held.
func (n *notifier) audit() {
	if time.Since(n.audited) < pollInterval {
		return
	}
	n.audited = time.Now()
	there := make(map[string]bool)
	for _, dir := range n.notify.WatchList() {
		there[dir] = true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for dir := range n.armed {
		if !there[dir] {
			delete(n.armed, dir)
		}
	}
}
