package filewatch

import (
	"bytes"
	"io/fs"
	"os"
	"time"
)

const (
	// pause is how long the size and time of a file must have stood still before it is read,
	// where it may be written to: whoever writes it may not have done yet (docs/waits.md).
	pause = 500 * time.Millisecond
	// longPause is that of one that looks like a part of itself.
	longPause = 2 * time.Second
)

// rest tells when a file is complete, as far as that can be seen.
type rest struct {
	seen  fs.FileInfo // how the file looked last, nil where there was none
	since time.Time   // since when it has looked like that
	whole bool        // it was moved to its place
	size  int64       // what it had when it was complete last, or was first seen
}

// look takes how the file at path looks now, and what was noticed of it. It returns how long the
// file must stay as it is to be complete, 0 where it is. One that was moved to its place is:
// whoever does that has written it before. One that is written to where it is has to stand
// still, for longer where it looks like a part of itself: it has become smaller, or ends in the
// middle of a line.
func (r *rest) look(path string, info fs.FileInfo, notice Notice) time.Duration {
	now := time.Now()
	if r.seen == nil || !os.SameFile(r.seen, info) {
		r.whole, r.size, r.since = notice == Moved && info.Size() > 0, info.Size(), now
		if written := info.ModTime(); written.Before(now) {
			r.since = written
		}
	} else if notice == Written || Differ(r.seen, info) {
		r.whole, r.since = false, now
	}
	r.seen = info
	stood := now.Sub(r.since)
	switch {
	case r.whole || stood >= longPause:
	case stood < pause:
		return pause - stood
	case info.Size() < r.size || isCut(path, info.Size()):
		return longPause - stood
	}
	r.size = info.Size()
	return 0
}

// isCut returns whether a file ends in the middle of a line, so that a number in it may be a
// part of one. Of JSON nothing can be missing without a mistake.
func isCut(path string, size int64) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // who reads it says so
	}
	defer func() { _ = f.Close() }()
	last := make([]byte, 1)
	_, err = f.ReadAt(last, size-1)
	return err == nil && !bytes.ContainsAny(last, "\n}]")
}

// Differ reports whether a file has been changed, replaced or removed, or has come, as far as that
// can be seen. Nil stands for no file.
func Differ(before, after fs.FileInfo) bool {
	if before == nil || after == nil {
		return before != after
	}
	return !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime())
}
