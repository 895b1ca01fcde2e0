// Package filewatch tells when files and directories may have changed. The file: source
// and "understudy serve" use it.
package filewatch

import (
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc/grpclog"
)

var logger = grpclog.Component("understudy")

const (
	// pollInterval is how often everything is looked at, whatever the system
	// notifies. It says nothing about mounts and about some file systems, and nothing
	// once its limit of watches is reached.
	pollInterval = 500 * time.Millisecond
	// quiet is how long nothing must change before it is read: files are written
	// piece by piece, and editors and the kubelet do several things in a row.
	quiet = 50 * time.Millisecond
	// patience is how long quiet is waited for: a neighbour that is written all the
	// time must not hold back the rest.
	patience = 300 * time.Millisecond
)

// Watcher tells when what is at some paths may have changed: the content of a file, the
// entries of a directory, or which file or directory the path leads to, for directories
// on the way are renamed and links are switched. It is not safe for concurrent use.
type Watcher struct {
	paths  []string
	notify *fsnotify.Watcher // nil where the system has none to give
	ticker *time.Ticker
	places places // those that are watched
}

// Options say how a Watcher watches. A source gets them by discovery.OwnOption.
type Options struct {
	// PollOnly does without the system's notifications. A simulation needs that, because
	// to wait for the system holds up the clock of testing/synctest.
	PollOnly bool
}

// New watches these files and directories from now on. They need not exist.
func New(paths ...string) *Watcher { return NewWith(Options{}, paths...) }

// NewWith is New with options.
func NewWith(options Options, paths ...string) *Watcher {
	w := &Watcher{paths: paths, ticker: time.NewTicker(pollInterval)}
	if !options.PollOnly {
		if notify, err := fsnotify.NewWatcher(); err == nil {
			w.notify = notify
		}
	}
	w.follow()
	return w
}

// Close ends the watch.
func (w *Watcher) Close() {
	w.ticker.Stop()
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

// Wait returns when there is reason to look at the paths again, or with ok false once
// done is closed. noticed means that the system has told of a change. Otherwise there may
// have been none: it is only time for another look.
func (w *Watcher) Wait(done <-chan struct{}) (noticed, ok bool) {
	for {
		select {
		case <-done:
			return false, false
		case event := <-w.events():
			if !w.places.concern(event.Name) {
				continue
			}
		case err := <-w.errors(): // events have been lost
			logger.Infof("watching %q: %v", w.paths, err)
		case <-w.ticker.C:
			w.follow()
			return false, true
		}
		if !settle(done, w.events(), w.places.concern) {
			return false, false
		}
		w.follow()
		return true, true
	}
}

// settle returns true once nothing has changed for a while, or once it has waited long
// enough for that. It returns false once done is closed.
func settle(done <-chan struct{}, events <-chan fsnotify.Event, concern func(path string) bool) bool {
	still, enough := time.NewTimer(quiet), time.NewTimer(patience)
	defer still.Stop()
	defer enough.Stop()
	for {
		select {
		case <-done:
			return false
		case event := <-events:
			if concern(event.Name) {
				still.Reset(quiet)
			}
		case <-still.C:
			return true
		case <-enough.C:
			return true
		}
	}
}

// follow watches the directories through which the paths lead now. It comes before
// the paths are read, so that no change is missed in between.
func (w *Watcher) follow() {
	if w.notify == nil {
		return
	}
	// What moves while it is looked at is looked at again; the ticker sees the rest.
	for range 3 {
		if !w.rearm(find(w.paths)) {
			return
		}
	}
}

// rearm watches wanted, and no other places. It reports whether a watch was added.
// A directory that was replaced has the path of the old one, and needs a new watch.
func (w *Watcher) rearm(wanted places) bool {
	armed := make(map[string]bool)
	for _, dir := range w.notify.WatchList() {
		armed[dir] = true
	}
	for dir, place := range w.places {
		if armed[dir] && !wanted[dir].same(place) {
			_ = w.notify.Remove(dir)
			armed[dir] = false
		}
	}
	added := false
	for dir := range wanted {
		if !armed[dir] && w.notify.Add(filepath.Clean(dir)) == nil {
			added = true
		}
	}
	w.places = wanted
	return added
}

// events returns where notice comes from, nil if from nowhere.
func (w *Watcher) events() <-chan fsnotify.Event {
	if w.notify == nil {
		return nil
	}
	return w.notify.Events
}

func (w *Watcher) errors() <-chan error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Errors
}
