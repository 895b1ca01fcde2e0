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
	// pollInterval is the interval at which Wait returns even without an event. The system sends no
	// events for mounts, for some file systems, and for directories beyond its limit on watches.
	pollInterval = 500 * time.Millisecond
	// quiet is how long Wait waits for further events after each one, because files are often written
	// in pieces. docs/waits.md lists quiet and patience.
	quiet = 50 * time.Millisecond
	// patience is the upper limit of this wait. Otherwise, a file that is written all the time would
	// delay other files.
	patience = 300 * time.Millisecond
)

// Notice is the kind of change that a Watcher noticed.
type Notice int

const (
	// Looked means that the path should be checked although no change was observed.
	Looked Notice = iota
	// Changed means that something may have changed, but not what.
	Changed
	// Moved means that the last change was the creation of an entry at the path, or its move to the
	// path.
	Moved
	// Written means that the last change was a write to the file.
	Written
)

// Watcher reports possible changes at some paths. It notices when the content of a file or the
// entries of a directory change, and when a path leads elsewhere because a directory was renamed or
// a link has changed. It is not safe for concurrent use.
type Watcher struct {
	options Options
	paths   []string
	ticker  *time.Ticker
	wake    chan struct{}

	places places // guarded by the notifier's lock

	mu      sync.Mutex
	notice  Notice
	entries map[spot]Notice // changes of single entries since then

	last map[spot]Notice
}

// Options configure a Watcher. Sources receive them through discovery.OwnOption.
type Options struct {
	// PollOnly disables the system's notifications. Simulations need this, because a goroutine that
	// waits for the system would stop the clock of a testing/synctest bubble.
	PollOnly bool
}

// New watches the given paths, which need not exist.
func New(paths ...string) *Watcher { return NewWith(Options{}, paths...) }

// NewWith is New with options.
func NewWith(options Options, paths ...string) *Watcher {
	w := &Watcher{options: options, paths: paths, ticker: time.NewTicker(pollInterval), wake: make(chan struct{}, 1), entries: make(map[spot]Notice)}
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

// tell records a change and wakes Wait. entry is the zero value if it is not known what has
// changed.
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
	case w.wake <- struct{}{}:
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
// not watched yet, it may have missed writes.
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

// Wait returns when the paths should be checked: after a change, when a value arrives on soon, or
// after pollInterval. ok is false if done was closed.
func (w *Watcher) Wait(done <-chan struct{}, soon <-chan time.Time) (what Notice, ok bool) {
	w.last = nil
	select {
	case <-done:
		return Looked, false
	case <-w.wake:
		if !settle(done, w.wake) {
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
func settle(done, wake <-chan struct{}) bool {
	still, enough := time.NewTimer(quiet), time.NewTimer(patience)
	defer still.Stop()
	defer enough.Stop()
	for {
		select {
		case <-done:
			return false
		case <-wake:
			still.Reset(quiet)
		case <-still.C:
			return true
		case <-enough.C:
			return true
		}
	}
}

// follow makes the system watch the directories on the paths. Call it before you read the paths;
// otherwise, changes may be missed.
func (w *Watcher) follow() {
	// A path may change while the watches are being created, so this is repeated. Polling finds later
	// changes.
	for range 3 {
		if !system.follow(w, find(w.paths)) {
			return
		}
	}
}
