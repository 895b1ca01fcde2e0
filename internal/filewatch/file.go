package filewatch

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/understudy-lb/understudy/internal/xnet"
)

const (
	// step is the resolution of the coarsest file system clock. If a file is written twice within a
	// step, both writes may set the same modification time.
	step = 2 * time.Second
	// settled is the minimum age of a modification time that can be relied on.
	settled = time.Minute
	// long is how long a file may stay Unfinished before Restless reports it.
	long = 10 * time.Second
)

// State is the result of Look.
type State int

const (
	// Same means that the file has not changed, so it need not be read.
	Same State = iota
	// Unfinished means that the file has changed but may be incomplete.
	Unfinished
	// Due means that the file should be read now.
	Due
)

// File decides when to read a file: when it has changed and seems complete. It reads the file again
// if the modification time may hide a change. It is not safe for concurrent use.
type File struct {
	path     string
	looked   bool
	seen     fs.FileInfo // nil if the file did not exist at the last Look
	rest     rest
	due      time.Time // when to read the file; zero if it need not be read
	again    bool      // read the file a second time, because the modification time may hide a change
	attempts int
	restless time.Time // when the file became Unfinished or, after an error of Restless, the earliest time for the next one
}

// NewFile returns a File for path, which need not exist. The file is due at once.
func NewFile(path string) *File { return &File{path: path} }

// Look checks whether the file should be read. notice is the change that the Watcher has noticed
// since the last call.
func (f *File) Look(notice Notice) State {
	now := time.Now()
	info, err := os.Stat(f.path)
	first := !f.looked
	if f.changed(info, err) || notice != Looked {
		f.due, f.attempts = now, 0
		f.again = !first || err != nil || now.Sub(info.ModTime()) < settled
	}
	if f.due.IsZero() || now.Before(f.due) {
		return Same
	}
	if err != nil {
		f.rest = rest{}
	} else if info.Mode().IsRegular() {
		if wait := f.rest.look(f.path, info, notice); wait > 0 {
			f.due = now.Add(wait)
			return Unfinished
		}
	}
	f.due, f.restless = time.Time{}, time.Time{}
	return Due
}

func (f *File) changed(info fs.FileInfo, err error) bool {
	looked, before := f.looked, f.seen
	if f.looked, f.seen = true, info; err != nil {
		f.seen = nil
	}
	return !looked || Differ(before, f.seen)
}

// Seen returns the file's info from the last call of Look, or nil if the file did not exist.
func (f *File) Seen() fs.FileInfo { return f.seen }

// Next returns the latest time at which Look must be called again. It is zero if a call is needed
// only after a notice.
func (f *File) Next() time.Time { return f.due }

// Again makes the file due at once.
func (f *File) Again() { f.due = time.Now() }

// Failed records that a due file could not be read. The file is due again after a backoff.
func (f *File) Failed() {
	f.due = time.Now().Add(xnet.Backoff(f.attempts, rand.Float64()))
	f.attempts++
}

// Read records that a due file was read. If the file has changed since Look, Read returns false,
// because the content may be a mixture of two versions, and the file is due again.
func (f *File) Read() bool {
	if info, err := os.Stat(f.path); err != nil || Differ(f.seen, info) {
		f.Again()
		return false
	}
	if f.attempts = 0; f.again {
		f.again, f.due = false, time.Now().Add(step)
	}
	return true
}

// Restless returns an error if the file has been Unfinished for a long time. It returns at most one
// error per hour.
func (f *File) Restless() error {
	now := time.Now()
	if f.restless.IsZero() {
		f.restless = now
	}
	if now.Sub(f.restless) < long {
		return nil
	}
	f.restless = now.Add(time.Hour)
	return fmt.Errorf("%s: has been written to for %v: want it to stand still, or to be replaced by rename", f.path, long)
}
