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
	// step is that of the coarsest clock of a file system. Of two writes within a step the
	// second may leave both the size and the time of the file as they were.
	step = 2 * time.Second
	// settled is how old a file is whose content nobody has changed within the last step, whatever
	// clock its time is of.
	settled = time.Minute
	// long is for how long a file may be written to before somebody hears of it.
	long = 10 * time.Second
)

// State is what Look finds.
type State int

const (
	// Same means that there is nothing to be read.
	Same State = iota
	// Unfinished means that the file is to be read, but may not be complete.
	Unfinished
	// Due means that it is to be read now.
	Due
)

// File tells when the file at a path is to be read: when it may have changed, is complete as far
// as that can be seen, and once more when its time has to tell of each change. It is not safe for
// concurrent use.
type File struct {
	path     string
	looked   bool
	seen     fs.FileInfo // how the file looked last, nil if there was none
	rest     rest
	due      time.Time // when it is to be read, zero where it is not
	again    bool      // it is to be read once more after that
	attempts int       // how often in a row it could not be read
	restless time.Time // since when it has not been read because it is written to
}

// NewFile returns the one for the file at path, which need not exist, and is to be read.
func NewFile(path string) *File { return &File{path: path} }

// Look looks at the file. It takes what was noticed of it since the last call.
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

// changed reports whether the file looks other than at the last call.
func (f *File) changed(info fs.FileInfo, err error) bool {
	looked, before := f.looked, f.seen
	if f.looked, f.seen = true, info; err != nil {
		f.seen = nil
	}
	return !looked || Differ(before, f.seen)
}

// Seen returns how the file looked at the last call of Look, nil for no file.
func (f *File) Seen() fs.FileInfo { return f.seen }

// Next returns when to look again at the latest, zero where there is no such time.
func (f *File) Next() time.Time { return f.due }

// Again has the file read again, whether it has changed or not.
func (f *File) Again() { f.due = time.Now() }

// Failed notes that the file, which was due, could not be read, for a reason that may pass. It is
// to be read again, by gRPC's backoff.
func (f *File) Failed() {
	f.due = time.Now().Add(xnet.Backoff(f.attempts, rand.Float64()))
	f.attempts++
}

// Read notes that the file, which was due, has been read. It reports whether it looks as it did
// before: else what was read may be part of this and part of that, and it is to be read again.
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

// Restless returns an error once an hour where the file is Unfinished for long.
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
