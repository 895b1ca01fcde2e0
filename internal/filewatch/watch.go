// Package filewatch tells when files and directories may have changed, and when a file is to be
// read. The file: source and "understudy serve" use it.
package filewatch

import (
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/grpclog"
)

var logger = grpclog.Component("understudy")

const (
	// pollInterval is how often everything is looked at, whatever the system
	// notifies. It says nothing about mounts and about some file systems, and nothing
	// once its limit of watches is reached.
	pollInterval = 500 * time.Millisecond
	// These two are in docs/waits.md. quiet is how long nothing must change before it is read: files are written
	// piece by piece, and editors and the kubelet do several things in a row.
	quiet = 50 * time.Millisecond
	// patience is how long quiet is waited for: a neighbour that is written all the
	// time must not hold back the rest.
	patience = 300 * time.Millisecond
)

// Notice is what a Watcher knows when it is time to look.
type Notice int

const (
	// Looked means that nobody told of a change. It is only time for another look.
	Looked Notice = iota
	// Changed means that something may have changed.
	Changed
	// Moved means that something has come to a path, or to the way there, and was not written to
	// since. It was moved there, or has just been created.
	Moved
	// Written means that a file was written to where it is.
	Written
)

// Watcher tells when what is at some paths may have changed: the content of a file, the
// entries of a directory, or which file or directory the path leads to, for directories
// on the way are renamed and links are switched. It is not safe for concurrent use.
type Watcher struct {
	options Options
	paths   []string
	ticker  *time.Ticker
	told    chan struct{} // holds something once there is a notice

	places places // those that are watched; guarded by the notifier's locks

	mu      sync.Mutex
	notice  Notice          // since the last Wait
	entries map[spot]Notice // likewise, of entries of directories

	last map[spot]Notice // what entries were when Wait returned last
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
	w := &Watcher{options: options, paths: paths, ticker: time.NewTicker(pollInterval), told: make(chan struct{}, 1), entries: make(map[spot]Notice)}
	if !options.PollOnly {
		system.join(w)
		w.follow()
	}
	return w
}

// Close ends the watch.
func (w *Watcher) Close() {
	w.ticker.Stop()
	if !w.options.PollOnly {
		system.leave(w)
	}
}

// maxEntries is how many entries of directories are told apart.
const maxEntries = 10_000

// tell has Wait return. That entry of a directory is concerned, the zero spot if none is.
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

// take returns the notice that there is.
func (w *Watcher) take() Notice {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := w.notice
	w.last = w.entries
	w.notice, w.entries = Looked, make(map[spot]Notice)
	return what
}

// Of returns what the last Wait has noticed of the file at path, in a directory that was watched
// already. What has come with its directory, or by another link, may have been written to before.
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

// Wait returns when there is reason to look at the paths again, at the latest when soon has
// something, or with ok false once done is closed.
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

// settle returns true once nothing has changed for a while, or once it has waited long
// enough for that. It returns false once done is closed.
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

// follow has the system watch the directories through which the paths lead now. It comes
// before the paths are read, so that no change is missed in between.
func (w *Watcher) follow() {
	// What moves while it is looked at is looked at again; the ticker sees the rest.
	for range 3 {
		if !system.follow(w, find(w.paths)) {
			return
		}
	}
}
