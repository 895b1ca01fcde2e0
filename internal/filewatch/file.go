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
	// step is the resolution of the coarsest file system clock. A second write within a step may
	// change neither the size nor the modification time of a file.
	step = 2 * time.Second
	// settled is the age beyond which the modification time proves that a file was not changed
	// within the last step, even with an inaccurate clock.
	settled = time.Minute
	// long is how long a file may be written to before Restless reports it.
	long = 10 * time.Second
)

// State is the result of Look.
type State int

const (
	// Same means that there is nothing to read.
	Same State = iota
	// Unfinished means that the file has changed but may be incomplete.
	Unfinished
	// Due means that the file should be read now.
	Due
)

// File decides when to read the file at a path: when it may have changed and appears to be
// complete, and once more if its modification time may not reflect every change. It is not safe for
// concurrent use.
type File struct {
	path     string
	looked   bool
	seen     fs.FileInfo // the file's info at the last Look, nil if it did not exist
	rest     rest
	due      time.Time // when to read the file, zero if it is not due
	again    bool      // read the file once more afterwards
	attempts int       // consecutive failures to read it
	restless time.Time // since when the file has been Unfinished
}

// NewFile returns a File for path, which need not exist. The file is due.
func NewFile(path string) *File { return &File{path: path} }

// Look checks the file. notice is what was noticed of it since the last call.
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

// changed reports whether the file differs from the last call.
func (f *File) changed(info fs.FileInfo, err error) bool {
	looked, before := f.looked, f.seen
	if f.looked, f.seen = true, info; err != nil {
		f.seen = nil
	}
	return !looked || Differ(before, f.seen)
}

// Seen returns the file's info at the last call of Look, nil if it did not exist.
func (f *File) Seen() fs.FileInfo { return f.seen }

// Next returns the latest time to call Look again, or zero if there is none.
func (f *File) Next() time.Time { return f.due }

// Again makes the file due, whether it has changed or not.
func (f *File) Again() { f.due = time.Now() }

// Failed records that the file was due but could not be read for a possibly temporary reason. The
// file becomes due again with gRPC's backoff.
func (f *File) Failed() {
	f.due = time.Now().Add(xnet.Backoff(f.attempts, rand.Float64()))
	f.attempts++
}

// Read records that the file was due and has been read. It reports whether the file is unchanged
// since Look. If not, the content may be a mixture of two versions, and the file is due again.
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

// Restless returns an error, once an hour, if the file has been Unfinished for long.
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
