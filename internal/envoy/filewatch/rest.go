package filewatch

import (
	"bytes"
	"io/fs"
	"os"
	"time"
)

const (
	// pause is how long a file must stay unchanged before it is read, unless it was moved into place
	// (docs/waits.md).
	pause = 500 * time.Millisecond
	// longPause is used instead of pause if a file looks incomplete.
	longPause = 2 * time.Second
)

// writeTracker estimates when a file has been written completely.
type writeTracker struct {
	seen     fs.FileInfo // nil if the file did not exist
	since    time.Time   // estimated time of the last change
	complete bool        // the file was moved into place and has not been written since
	size     int64       // the size at the last time when the file seemed complete; at first, the initial size
}

// remaining returns how much longer the file must stay unchanged before it counts as complete. A
// file that was moved into place is complete at once. Other files must stay unchanged for pause, or
// for longPause if they have become smaller or end in the middle of a line.
func (r *writeTracker) remaining(path string, info fs.FileInfo, notice Notice) time.Duration {
	now := time.Now()
	if r.seen == nil || !os.SameFile(r.seen, info) {
		r.complete, r.size, r.since = notice == Moved && info.Size() > 0, info.Size(), now
		if age := now.Sub(info.ModTime()); age > 0 {
			r.since = now.Add(-age) // keeps the monotonic clock reading of now, because the wall clock may be set
		}
	} else if notice == Written || Differ(r.seen, info) {
		r.complete, r.since = false, now
	}
	r.seen = info
	unchanged := now.Sub(r.since)
	switch {
	case r.complete || unchanged >= longPause:
	case unchanged < pause:
		return pause - unchanged
	case info.Size() < r.size || endsMidLine(path, info.Size()):
		return longPause - unchanged
	}
	r.size = info.Size()
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

// Differ reports whether a file seems to have changed between two calls of os.Stat. An argument is
// nil if the file did not exist.
func Differ(before, after fs.FileInfo) bool {
	if before == nil || after == nil {
		return before != after
	}
	return !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime())
}
