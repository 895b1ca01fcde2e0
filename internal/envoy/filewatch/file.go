// Package filewatch decides when to read a file that may change. It's used by the file source and
// by "understudy serve".
package filewatch

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"time"
)

const (
	// Interval is how often to look for changes. The system's notifications wouldn't help much.
	// There are none for mounts and some file systems, and we have to wait after a change anyway.
	Interval = 250 * time.Millisecond
	// A file may be half-written, so we only read it once it hasn't changed for this long
	// (docs/waits.md).
	pause = 500 * time.Millisecond
	// Used instead of pause if the file looks incomplete.
	longPause = 2 * time.Second
	// Some file systems have clocks as coarse as this, so two writes in a row may leave us with the
	// same modification time.
	clockResolution = 2 * time.Second
	// We can trust a modification time that's at least this old, because any later write would have
	// changed it.
	reliableAge = time.Minute
	// Look returns an error if the file keeps changing for longer than this.
	unfinishedLimit = 10 * time.Second
)

// File decides when to read a file: after it has changed, and once it looks complete. If a change
// could be hidden by the modification time, we have the file read twice. Not safe for concurrent
// use.
type File struct {
	path            string
	seen            fs.FileInfo // nil if there was no file at the last Look
	since           time.Time   // when it last changed, estimated
	size            int64       // size when it last looked complete, or initially
	due             time.Time   // when to read it, or zero
	readTwice       bool        // the modification time may hide a change
	unfinishedSince time.Time   // when it began to change, or zero; Look moves it an hour ahead after an error
}

// NewFile returns a File for path. The file doesn't have to exist. It's due as soon as it looks
// complete.
func NewFile(path string) *File { return &File{path: path, due: time.Now()} }

// Look reports whether to read the file now. If the file has been changing for longer than
// unfinishedLimit, Look returns an error, but not more than once an hour.
func (f *File) Look() (due bool, err error) {
	now := time.Now()
	info, _ := os.Stat(f.path) // nil if it doesn't exist
	if differ(f.seen, info) {
		f.changed(info, now)
	}
	f.seen = info
	if f.due.IsZero() || now.Before(f.due) {
		return false, nil
	}
	if info != nil && info.Mode().IsRegular() {
		if wait := f.remaining(now.Sub(f.since)); wait > 0 {
			f.due = now.Add(wait)
			return false, f.checkUnfinished(now)
		}
		f.size = info.Size()
	}
	f.due, f.unfinishedSince = time.Time{}, time.Time{}
	return true, nil
}

func (f *File) changed(info fs.FileInfo, now time.Time) {
	f.due, f.since = now, now
	f.readTwice = f.seen != nil || now.Sub(info.ModTime()) < reliableAge
	if info != nil && (f.seen == nil || !os.SameFile(f.seen, info)) {
		f.size = info.Size()
		if age := now.Sub(info.ModTime()); age > 0 {
			f.since = now.Add(-age) // now has a monotonic clock reading, which isn't affected if the wall clock is set
		}
	}
}

// remaining returns how much longer the file has to stay unchanged until we consider it complete.
// If it has shrunk or ends in the middle of a line, that takes longPause instead of pause.
func (f *File) remaining(unchanged time.Duration) time.Duration {
	switch {
	case unchanged < pause:
		return pause - unchanged
	case unchanged < longPause && (f.seen.Size() < f.size || endsMidLine(f.path, f.seen.Size())):
		return longPause - unchanged
	}
	return 0
}

// A closing bracket counts as the end of a line, since JSON files don't have to end with a newline.
// If JSON got truncated after a bracket, we'll find out because it's a syntax error.
func endsMidLine(path string, size int64) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	last := make([]byte, 1)
	_, err = f.ReadAt(last, size-1)
	return err == nil && !bytes.ContainsAny(last, "\n}]")
}

func (f *File) checkUnfinished(now time.Time) error {
	if f.unfinishedSince.IsZero() {
		f.unfinishedSince = now
	}
	if now.Sub(f.unfinishedSince) < unfinishedLimit {
		return nil
	}
	f.unfinishedSince = now.Add(time.Hour)
	return fmt.Errorf("%s: has been changing for %v: want the changes to stop, or a replacement by rename", f.path, unfinishedLimit)
}

// Next returns how long to wait until the next Look.
func (f *File) Next() time.Duration {
	if f.due.IsZero() {
		return Interval
	}
	return min(Interval, time.Until(f.due))
}

// Again makes the file due again, as soon as it looks complete.
func (f *File) Again() { f.due = time.Now() }

// Failed must be called if the file couldn't be read. It's due again after pause.
func (f *File) Failed() { f.due = time.Now().Add(pause) }

// Read must be called after reading the file. If the file has changed since Look, we may have read
// a mixture of two versions. Read then returns false, and the file must be read again.
func (f *File) Read() bool {
	if info, _ := os.Stat(f.path); differ(f.seen, info) {
		f.Again()
		return false
	}
	if f.readTwice {
		f.readTwice, f.due = false, time.Now().Add(clockResolution)
	}
	return true
}

// differ compares two results of os.Stat, which are nil if the file didn't exist.
func differ(before, after fs.FileInfo) bool {
	if before == nil || after == nil {
		return before != after
	}
	return !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime())
}
