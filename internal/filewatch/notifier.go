package filewatch

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// notifier is the only file notifier of the process, because Linux limits their number to 128 per
// user. It exists while there is a Watcher.
//
// The goroutine that receives events must never wait for a call of fsnotify: such a call may hold a
// lock until that goroutine has received an error. It therefore never locks arming, which is held
// during calls of fsnotify.
type notifier struct {
	arming  sync.Mutex // held during calls of fsnotify; locked before mu
	notify  *fsnotify.Watcher
	audited time.Time

	mu        sync.Mutex
	watchers  map[*Watcher]bool
	concerned map[spot]map[*Watcher]bool
	armed     map[string]*place
}

var system = notifier{
	watchers:  make(map[*Watcher]bool),
	concerned: make(map[spot]map[*Watcher]bool),
	armed:     make(map[string]*place),
}

// spot is a directory and the name of an entry, or one of the special names below.
type spot struct{ dir, name string }

const (
	anyEntry = ""  // any entry of the directory
	itself   = "." // the directory itself
)

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

// join registers w. If the system allows no further notifier, follow tries again later.
func (n *notifier) join(w *Watcher) {
	n.arming.Lock()
	defer n.arming.Unlock()
	n.mu.Lock()
	n.watchers[w] = true
	n.mu.Unlock()
	n.begin()
}

// begin creates the notifier if it does not exist. The caller holds arming.
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
			n.tellAll()
		}
	}
}

func (n *notifier) tell(event fsnotify.Event) {
	what := Changed
	switch {
	case event.Has(fsnotify.Write):
		what = Written
	case event.Has(fsnotify.Create):
		what = Moved
	case event.Has(fsnotify.Remove), event.Has(fsnotify.Rename):
		n.mu.Lock()
		delete(n.armed, event.Name)
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

// follow updates the directories that the system watches for w. If a directory was replaced, it
// watches the new one. It returns true if changes may have been missed; the caller must then
// determine the directories again.
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

// concern replaces the spots of which w is notified, and reports whether some of them are new. The
// caller holds mu.
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

// arm makes the system watch a directory, and reports whether the watch is new. The caller holds
// arming.
func (n *notifier) arm(dir string, now *place) bool {
	n.mu.Lock()
	before := n.armed[dir]
	n.mu.Unlock()
	if before.same(now) {
		return false
	}
	gap := n.notify.Remove(dir) == nil // true if the directory was watched before: it may have been replaced in the meantime
	n.mu.Lock()
	n.armed[dir] = now // set before Add, because the system may end the watch at once
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

func (n *notifier) tellOf(s spot, what Notice, entry spot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.concerned[s] {
		w.tell(what, entry)
	}
}

// disarm ends the watches that no Watcher needs. The caller holds arming.
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

// audit finds watches that the system has ended without an event, for example when a file system
// was unmounted. The caller holds arming.
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
