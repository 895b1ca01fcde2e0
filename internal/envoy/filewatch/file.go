package filewatch

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/understudy-lb/understudy/internal/net/xnet"
)

const (
	// clockResolution is the resolution of the coarsest file system clock. Two writes within this time
	// may set the same modification time.
	clockResolution = 2 * time.Second
	// reliableAge is the age from which on a modification time can be relied on: a later write would
	// have changed it.
	reliableAge = time.Minute
	// unfinishedLimit is how long a file may stay Unfinished before CheckUnfinished returns an error.
	unfinishedLimit = 10 * time.Second
)

// State is the result of Look.
type State int

const (
	// Same means that the file need not be read now.
	Same State = iota
	// Unfinished means that the file has changed but may be incomplete.
	Unfinished
	// Due means that the file should be read now.
	Due
)

// File decides when a file must be read: after a change, when the file seems complete. The file
// must be read a second time if its modification time may hide a change. A File is not safe for
// concurrent use.
type File struct {
	path            string
	looked          bool
	seen            fs.FileInfo // nil if the file did not exist at the last Look
	writes          writeTracker
	due             time.Time // when to read the file; zero if it need not be read
	readTwice       bool      // the modification time may hide a change
	attempts        int
	unfinishedSince time.Time // when the file became Unfinished, or zero; CheckUnfinished adds an hour to limit its errors
}

// NewFile returns a File for path, which need not exist. The first call of Look returns Due, or
// Unfinished if the file may be incomplete.
func NewFile(path string) *File { return &File{path: path} }

// Look reports whether the file should be read. notice is the change that the Watcher has noticed
// since the last call.
func (f *File) Look(notice Notice) State {
	now := time.Now()
	info, err := os.Stat(f.path)
	first := !f.looked
	if f.changed(info, err) || notice != Looked {
		f.due, f.attempts = now, 0
		f.readTwice = !first || err != nil || now.Sub(info.ModTime()) < reliableAge
	}
	if f.due.IsZero() || now.Before(f.due) {
		return Same
	}
	if err != nil {
		f.writes = writeTracker{}
	} else if info.Mode().IsRegular() {
		if wait := f.writes.remaining(f.path, info, notice); wait > 0 {
			f.due = now.Add(wait)
			return Unfinished
		}
	}
	f.due, f.unfinishedSince = time.Time{}, time.Time{}
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

// Next returns the time at which Look must be called even if the Watcher notices no change. It
// returns the zero time if no such call is needed.
func (f *File) Next() time.Time { return f.due }

// Again makes the next call of Look return Due, or Unfinished if the file may be incomplete.
func (f *File) Again() { f.due = time.Now() }

// Failed records that the file could not be read. After a backoff, Look returns Due again.
func (f *File) Failed() {
	f.due = time.Now().Add(xnet.Backoff(f.attempts, rand.Float64()))
	f.attempts++
}

// Read records that the file was read. If the file has changed since Look, Read returns false,
// because the content may be a mixture of two versions. The file must then be read again.
func (f *File) Read() bool {
	if info, err := os.Stat(f.path); err != nil || Differ(f.seen, info) {
		f.Again()
		return false
	}
	if f.attempts = 0; f.readTwice {
		f.readTwice, f.due = false, time.Now().Add(clockResolution)
	}
	return true
}

// CheckUnfinished returns an error if the file has been Unfinished for longer than unfinishedLimit,
// but at most once an hour. It must be called while the file is Unfinished.
func (f *File) CheckUnfinished() error {
	now := time.Now()
	if f.unfinishedSince.IsZero() {
		f.unfinishedSince = now
	}
	if now.Sub(f.unfinishedSince) < unfinishedLimit {
		return nil
	}
	f.unfinishedSince = now.Add(time.Hour)
	return fmt.Errorf("%s: has been changing for %v: want the changes to stop, or a replacement by rename", f.path, unfinishedLimit)
}
