package filewatch

import (
	"bytes"
	"io/fs"
	"os"
	"time"
)

const (
	// pause is how long a file that was written in place must stay unchanged before it is read
	// (docs/waits.md).
	pause = 500 * time.Millisecond
	// longPause is used instead of pause if a file looks incomplete.
	longPause = 2 * time.Second
)

type rest struct {
	seen  fs.FileInfo // nil if the file did not exist
	since time.Time   // when the file last changed, as far as known
	whole bool
	size  int64 // size of the file when it last seemed complete or, before that, when it was first seen
}

// look returns how much longer the file must stay unchanged before it counts as complete. A file
// that was moved into place is complete at once. Other files must stay unchanged for pause, or for
// longPause if they have become smaller or end in the middle of a line.
func (r *rest) look(path string, info fs.FileInfo, notice Notice) time.Duration {
	now := time.Now()
	if r.seen == nil || !os.SameFile(r.seen, info) {
		r.whole, r.size, r.since = notice == Moved && info.Size() > 0, info.Size(), now
		if age := now.Sub(info.ModTime()); age > 0 {
			r.since = now.Add(-age) // relative to now, which has a monotonic clock reading, because the wall clock may be set
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

// isCut reports whether a file ends in the middle of a line. A final bracket counts as the end of a
// line: if JSON is incomplete there, it is a syntax error anyway.
func isCut(path string, size int64) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	last := make([]byte, 1)
	_, err = f.ReadAt(last, size-1)
	return err == nil && !bytes.ContainsAny(last, "\n}]")
}

// Differ reports whether a file seems to have changed between two calls of os.Stat. nil means that
// the file did not exist.
func Differ(before, after fs.FileInfo) bool {
	if before == nil || after == nil {
		return before != after
	}
	return !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime())
}
