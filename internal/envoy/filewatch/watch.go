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
	// pollInterval is the maximum time after which Wait returns without an event. The system sends no
	// events for mounts, for some file systems, and for directories beyond its limit on watches.
	pollInterval = 500 * time.Millisecond
	// quietPeriod is how long Wait waits for further events after each event, because files are often
	// written in pieces. docs/waits.md lists quietPeriod and maxSettleTime.
	quietPeriod = 50 * time.Millisecond
	// maxSettleTime is the maximum time that Wait waits for further events. Without it, a file that is
	// written continuously would delay other files.
	maxSettleTime = 300 * time.Millisecond
)

// Notice is the kind of change that a Watcher noticed.
type Notice int

const (
	// Looked means that the path should be checked although no change was observed.
	Looked Notice = iota
	// Changed means that an unknown change may have occurred.
	Changed
	// Moved means that the last change was the creation of a file or directory at the path, or its
	// move to the path.
	Moved
	// Written means that the last change was a write to the file.
	Written
)

// Watcher reports possible changes at a set of paths. It notices changes of the content of a file
// and of the entries of a directory. It also notices when a directory is renamed or a link is
// changed, so that a path refers to another file. It is not safe for concurrent use.
type Watcher struct {
	options Options
	paths   []string
	ticker  *time.Ticker
	wake    chan struct{}

	dirs watchedDirs // guarded by notifier.mu

	mu      sync.Mutex
	notice  Notice              // combines the changes since the last call of Wait
	entries map[dirEntry]Notice // changes of single entries since the last call of Wait

	lastEntries map[dirEntry]Notice // the entries that the last call of Wait took
}

// Options configure a Watcher. Sources receive them through discovery.OwnOption.
type Options struct {
	// PollOnly disables the system's notifications. Simulations need this, because a goroutine that
	// waits for the system would stop the clock of a testing/synctest bubble.
	PollOnly bool
}

// New watches the given paths, which need not exist.
func New(paths ...string) *Watcher { return NewWith(Options{}, paths...) }

// NewWith is like New, but with options.
func NewWith(options Options, paths ...string) *Watcher {
	w := &Watcher{options: options, paths: paths, ticker: time.NewTicker(pollInterval), wake: make(chan struct{}, 1), entries: make(map[dirEntry]Notice)}
	if !options.PollOnly {
		system.register(w)
		w.updateWatches()
	}
	return w
}

// Close stops the Watcher.
func (w *Watcher) Close() {
	w.ticker.Stop()
	if !w.options.PollOnly {
		system.unregister(w)
	}
}

const maxEntries = 10_000

// notify records a change and wakes Wait. entry is the zero value if the changed entry is unknown.
func (w *Watcher) notify(what Notice, entry dirEntry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notice == Looked || what != Changed {
		w.notice = what
	}
	if entry != (dirEntry{}) && (what != Changed || w.entries[entry] == Looked) && len(w.entries) < maxEntries {
		w.entries[entry] = what
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Watcher) takeNotice() Notice {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := w.notice
	w.lastEntries = w.entries
	w.notice, w.entries = Looked, make(map[dirEntry]Notice)
	return what
}

// Of returns the change that the last call of Wait has noticed for the file at path. Writes are
// missed if the file's directory was not watched yet.
func (w *Watcher) Of(path string) Notice {
	if len(w.lastEntries) == 0 {
		return Looked
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return Looked
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return Looked
	}
	return w.lastEntries[dirEntry{dir, filepath.Base(path)}]
}

// Wait returns when the paths should be checked: after a change, when a value arrives on soon, or
// after pollInterval. ok is false if Wait returns because done was closed.
func (w *Watcher) Wait(done <-chan struct{}, soon <-chan time.Time) (what Notice, ok bool) {
	w.lastEntries = nil
	select {
	case <-done:
		return Looked, false
	case <-w.wake:
		if !settle(done, w.wake) {
			return Looked, false
		}
		what = w.takeNotice()
	case <-soon:
	case <-w.ticker.C:
	}
	if !w.options.PollOnly {
		w.updateWatches()
	}
	return what, true
}

// settle waits until no event has arrived for quietPeriod, but not longer than maxSettleTime. It
// returns false if done is closed.
func settle(done, wake <-chan struct{}) bool {
	quietTimer, limitTimer := time.NewTimer(quietPeriod), time.NewTimer(maxSettleTime)
	defer quietTimer.Stop()
	defer limitTimer.Stop()
	for {
		select {
		case <-done:
			return false
		case <-wake:
			quietTimer.Reset(quietPeriod)
		case <-quietTimer.C:
			return true
		case <-limitTimer.C:
			return true
		}
	}
}

// updateWatches makes the system watch the directories on the paths. It must be called before the
// paths are read; otherwise, changes may be missed.
func (w *Watcher) updateWatches() {
	// A path may change while the system begins to watch its directories, so the directories are
	// determined again. If the path still changes after three attempts, polling finds the change.
	for range 3 {
		if !system.updateWatches(w, findDirs(w.paths)) {
			return
		}
	}
}
