// Package filewatch decides when to read a file that may change. The file source and
// "understudy serve" use it.
package filewatch

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"time"
)

const (
	// Interval is how often to look for changes. We do not use the notifications of the system: it sends
	// none for mounts and some file systems, and a changed file must wait anyway.
	Interval = 250 * time.Millisecond
	// pause is how long a file must stay unchanged before it is read, because it may be half-written
	// (docs/waits.md).
	pause = 500 * time.Millisecond
	// longPause is used instead of pause if a file looks incomplete.
	longPause = 2 * time.Second
	// clockResolution is the resolution of the coarsest file system clock. Two writes within this time
	// may set the same modification time.
	clockResolution = 2 * time.Second
	// reliableAge is the age from which on a modification time can be relied on: a later write would
	// have changed it.
	reliableAge = time.Minute
	// unfinishedLimit is how long a file may keep changing before Look returns an error.
	unfinishedLimit = 10 * time.Second
)

// File decides when a file must be read: after a change, when the file seems complete. The file
// must be read a second time if its modification time may hide a change. A File is not safe for
// concurrent use.
type File struct {
	path            string
	seen            fs.FileInfo // nil if the file did not exist at the last Look
	since           time.Time   // estimated time of the last change
	size            int64       // the size at the last time when the file seemed complete; at first, the initial size
	due             time.Time   // when to read the file; zero if it need not be read
	readTwice       bool        // the modification time may hide a change
	unfinishedSince time.Time   // when the file began to change, or zero; Look adds an hour to limit its errors
}

// NewFile returns a File for path, which need not exist. The file is due once it seems complete.
func NewFile(path string) *File { return &File{path: path, due: time.Now()} }

// Look reports whether the file should be read now. The error says that the file has been changing
// for longer than unfinishedLimit; Look returns it at most once an hour.
func (f *File) Look() (due bool, err error) {
	now := time.Now()
	info, _ := os.Stat(f.path) // nil if there is none
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
			f.since = now.Add(-age) // keeps the monotonic clock reading of now, because the wall clock may be set
		}
	}
}

// remaining returns how much longer the file must stay unchanged before it counts as complete: for
// pause in total, or for longPause if it has become smaller or ends in the middle of a line.
func (f *File) remaining(unchanged time.Duration) time.Duration {
	switch {
	case unchanged < pause:
		return pause - unchanged
	case unchanged < longPause && (f.seen.Size() < f.size || endsMidLine(f.path, f.seen.Size())):
		return longPause - unchanged
	}
	return 0
}

// endsMidLine reports whether a file ends in the middle of a line. A closing bracket also counts as
// the end of a line, because JSON files may end without a newline. JSON that was truncated after a
// bracket is a syntax error.
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

// Next returns how long to wait before the next Look.
func (f *File) Next() time.Duration {
	if f.due.IsZero() {
		return Interval
	}
	return min(Interval, time.Until(f.due))
}

// Again makes the file due at the next Look at which it seems complete.
func (f *File) Again() { f.due = time.Now() }

// Failed records that the file could not be read. It is due again after pause.
func (f *File) Failed() { f.due = time.Now().Add(pause) }

// Read records that the file was read. If the file has changed since Look, Read returns false,
// because the content may be a mixture of two versions. The file must then be read again.
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

// differ reports whether a file seems to have changed between two calls of os.Stat. An argument is
// nil if the file did not exist.
func differ(before, after fs.FileInfo) bool {
	if before == nil || after == nil {
		return before != after
	}
	return !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime())
}
