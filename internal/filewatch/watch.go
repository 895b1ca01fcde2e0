// Package filewatch detects changes of files and decides when to read a file. The file source and
// "understudy serve" use it.
package filewatch

import (
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/grpclog"
)

var logger = grpclog.Component("understudy")

const (
	// pollInterval is how often Wait returns without an event. The system sends no events for
	// mounts, for some file systems, and for directories beyond its limit on watches.
	pollInterval = 500 * time.Millisecond
	// quiet is how long Wait waits for further events, because files are often written in pieces.
	// docs/waits.md lists quiet and patience.
	quiet = 50 * time.Millisecond
	// patience limits this wait, so that a file with constant writes does not delay other files.
	patience = 300 * time.Millisecond
)

// Notice is the kind of change that a Watcher noticed.
type Notice int

const (
	// Looked means that no change was observed.
	Looked Notice = iota
	// Changed means that something may have changed.
	Changed
	// Moved means that an entry was created at the path, or moved there, and was not written later.
	Moved
	// Written means that a file was written in place.
	Written
)

// Watcher reports possible changes at some paths. These are changes to the content of a file, to
// the entries of a directory, or to the target of a path after a directory is renamed or a link
// changes. It is not safe for concurrent use.
type Watcher struct {
	options Options
	paths   []string
	ticker  *time.Ticker
	told    chan struct{}

	places places // guarded by the notifier's locks

	mu      sync.Mutex
	notice  Notice
	entries map[spot]Notice // changes of single entries since then

	last map[spot]Notice
}

// Options configure a Watcher. Sources receive them through discovery.OwnOption.
type Options struct {
	// PollOnly ignores the system's notifications. Simulations need it, because a wait for the
	// system would block the clock of testing/synctest.
	PollOnly bool
}

// New watches the given paths, which need not exist.
func New(paths ...string) *Watcher { return NewWith(Options{}, paths...) }

// NewWith is New with options.
func NewWith(options Options, paths ...string) *Watcher {
	w := &Watcher{options: options, paths: paths, ticker: time.NewTicker(pollInterval), told: make(chan struct{}, 1), entries: make(map[spot]Notice)}
	if !options.PollOnly {
		system.join(w)
		w.follow()
	}
	return w
}

// Close stops the Watcher.
func (w *Watcher) Close() {
	w.ticker.Stop()
	if !w.options.PollOnly {
		system.leave(w)
	}
}

const maxEntries = 10_000

// tell records a change and wakes Wait. entry is zero if it is unknown.
func (w *Watcher) tell(what Notice, entry spot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notice == Looked || what != Changed {
		w.notice = what
	}
	if entry != (spot{}) && (what != Changed || w.entries[entry] == Looked) && len(w.entries) < maxEntries {
		w.entries[entry] = what
	}
	select {
	case w.told <- struct{}{}:
	default:
	}
}

func (w *Watcher) take() Notice {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := w.notice
	w.last = w.entries
	w.notice, w.entries = Looked, make(map[spot]Notice)
	return what
}

// Of returns the change that Wait last noticed for the file at path. If the file's directory was
// not watched before, earlier writes may be missing.
func (w *Watcher) Of(path string) Notice {
	if len(w.last) == 0 {
		return Looked
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return Looked
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return Looked
	}
	return w.last[spot{dir, filepath.Base(path)}]
}

// Wait returns when the paths should be checked: after a change, when soon receives a value, or
// after pollInterval. ok is false if done is closed.
func (w *Watcher) Wait(done <-chan struct{}, soon <-chan time.Time) (what Notice, ok bool) {
	w.last = nil
	select {
	case <-done:
		return Looked, false
	case <-w.told:
		if !settle(done, w.told) {
			return Looked, false
		}
		what = w.take()
	case <-soon:
	case <-w.ticker.C:
	}
	if !w.options.PollOnly {
		w.follow()
	}
	return what, true
}

// settle waits until no event has arrived for the time quiet, but not longer than patience. It
// returns false if done is closed.
func settle(done, told <-chan struct{}) bool {
	still, enough := time.NewTimer(quiet), time.NewTimer(patience)
	defer still.Stop()
	defer enough.Stop()
	for {
		select {
		case <-done:
			return false
		case <-told:
			still.Reset(quiet)
		case <-still.C:
			return true
		case <-enough.C:
			return true
		}
	}
}

// follow makes the system watch the directories on the paths. It must be called before the paths
// are read.
func (w *Watcher) follow() {
	// A path may lead to other directories before the watches exist, so try again. Polling finds
	// later changes.
	for range 3 {
		if !system.follow(w, find(w.paths)) {
			return
		}
	}
}
