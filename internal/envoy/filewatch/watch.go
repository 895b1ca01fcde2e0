// Package filewatch detects changes of files and decides when to read a file. The file source and
// "understudy serve" use it.
package filewatch

import (
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/grpclog"
)

var logger = grpclog.Component("understudy")

const (
	// pollInterval is the maximum time after which Wait returns without an event. The system sends no
	// events for mounts, for some file systems, and for directories beyond its limit on watches.
	pollInterval = 500 * time.Millisecond
	// quietPeriod is how long Wait collects further events after the first one, because a file is
	// often written in pieces (docs/waits.md).
	quietPeriod = 50 * time.Millisecond
)

// Watcher reports possible changes at a set of paths, of the content of a file or the entries of a
// directory. It is not safe for concurrent use.
type Watcher struct {
	options Options
	paths   []string
	ticker  *time.Ticker
	wake    chan struct{}
}

// Options configure a Watcher. Sources receive them through discovery.OwnOption.
type Options struct {
	// PollOnly disables the system's notifications. Simulations need this, because a goroutine that
	// waits for the system would stop the clock of a testing/synctest bubble.
	PollOnly bool
}

// New watches the given paths, which need not exist.
func New(options Options, paths ...string) *Watcher {
	w := &Watcher{options: options, paths: paths, ticker: time.NewTicker(pollInterval), wake: make(chan struct{}, 1)}
	w.updateWatches()
	return w
}

// Close stops the Watcher.
func (w *Watcher) Close() {
	w.ticker.Stop()
	system.watch(w, nil)
}

// Wait returns true when the paths should be checked: after a change, when a value arrives on soon,
// or after pollInterval. It returns false when done is closed.
func (w *Watcher) Wait(done <-chan struct{}, soon <-chan time.Time) bool {
	select {
	case <-done:
		return false
	case <-w.wake:
		select {
		case <-done:
			return false
		case <-time.After(quietPeriod):
		}
		select {
		case <-w.wake:
		default:
		}
	case <-soon:
	case <-w.ticker.C:
	}
	w.updateWatches()
	return true
}

// updateWatches makes the system watch the directories of the paths, and what they lead to. It must be called before the
// paths are read; otherwise, changes may be missed. A change further up, such as another target of
// a link to a directory, is found by polling.
func (w *Watcher) updateWatches() {
	if w.options.PollOnly {
		return
	}
	dirs := make(map[string]bool)
	for _, path := range w.paths {
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			dirs[dir] = true
		}
		if target, err := filepath.EvalSymlinks(path); err == nil {
			if info, err := os.Stat(target); err == nil && !info.IsDir() {
				target = filepath.Dir(target)
			}
			dirs[target] = true
		}
	}
	system.watch(w, dirs)
}
