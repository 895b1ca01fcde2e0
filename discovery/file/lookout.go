package file

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/understudy-lb/understudy/internal/clusterfile"
	"github.com/understudy-lb/understudy/internal/filewatch"
)

// lookout watches and reads a file for all channels that use it. There is one a file,
// however many they are: to look at a file twice a second for each of 1,000 channels costs a
// process almost a twentieth of a core, and to parse it for each takes megabytes a channel.
type lookout struct {
	of    watched
	users int           // guarded by lookouts.mu
	done  chan struct{} // closed once nobody uses it

	mu   sync.Mutex
	last *reading      // nil until the file has been read
	info fs.FileInfo   // how the file looked then, nil if there was none
	news chan struct{} // closed, and replaced, when there is another

	// Used by run.
	file   *filewatch.File
	parsed reading // the last content
	sum    [sha256.Size]byte
}

// reading is what was found in a file, the same for all channels.
type reading struct {
	known   bool                  // the content is
	doc     *clusterfile.Document // nil where err says why there is none
	version string                // of the content
	err     error
}

// watched is what is watched, and how.
type watched struct {
	path    string
	options filewatch.Options
}

// lookouts are those that are used.
var lookouts = struct {
	mu  sync.Mutex
	all map[watched]*lookout
}{all: make(map[watched]*lookout)}

// join returns the lookout for a file. The caller calls leave.
func join(of watched) *lookout {
	lookouts.mu.Lock()
	defer lookouts.mu.Unlock()
	l := lookouts.all[of]
	if l == nil {
		l = &lookout{of: of, file: filewatch.NewFile(of.path), done: make(chan struct{}), news: make(chan struct{})}
		lookouts.all[of] = l
		go l.run()
	}
	l.users++
	return l
}

func (l *lookout) leave() {
	lookouts.mu.Lock()
	defer lookouts.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(lookouts.all, l.of)
		close(l.done)
	}
}

// read returns what was found last, nil for nothing yet, and what is closed when there is
// something else.
func (l *lookout) read() (*reading, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.news
}

// isCurrent reports whether the file still looks as it did then.
func (l *lookout) isCurrent() bool {
	info, err := os.Stat(l.of.path)
	if err != nil {
		info = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !filewatch.Differ(l.info, info)
}

// publish passes on what was found, which may be what it was.
func (l *lookout) publish(r *reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.info = l.file.Seen()
	if r == l.last {
		return
	}
	l.last = r
	close(l.news)
	l.news = make(chan struct{})
}

// run reads the file now and whenever it may have changed.
func (l *lookout) run() {
	w := filewatch.NewWith(l.of.options, l.of.path)
	defer w.Close()
	soon := time.NewTimer(0)
	defer soon.Stop()
	for notice, ok := filewatch.Looked, true; ok; notice, ok = w.Wait(l.done, soon.C) {
		soon.Stop()
		if notice == filewatch.Moved && w.Of(l.of.path) != filewatch.Moved {
			notice = filewatch.Changed // a directory or a link has come, and not the file alone
		}
		l.look(notice)
		if next := l.file.Next(); !next.IsZero() {
			soon.Reset(time.Until(next))
		}
	}
}

// look looks at the file, and reads it if that is due.
func (l *lookout) look(notice filewatch.Notice) {
	switch l.file.Look(notice) {
	case filewatch.Unfinished:
		if err := l.file.Restless(); err != nil {
			logger.Warning(Scheme + ": " + err.Error())
			if last, _ := l.read(); last == nil {
				l.publish(&reading{err: err})
			}
		}
	case filewatch.Due:
		l.take()
	}
}

// take reads the file.
func (l *lookout) take() {
	data, err := clusterfile.Read(l.of.path)
	if err != nil {
		l.fail(err)
		return
	}
	if !l.file.Read() {
		return
	}
	if sum := sha256.Sum256(data); !l.parsed.known || sum != l.sum {
		l.sum = sum
		l.parsed = reading{known: true, version: fmt.Sprintf("%.4x", sum)}
		l.parsed.doc, l.parsed.err = clusterfile.Parse(l.of.path, data)
	} else if last, _ := l.read(); last != nil && last.known {
		l.publish(last)
		return
	}
	parsed := l.parsed
	l.publish(&parsed)
}

// fail passes on why the file cannot be read. Where the reason may pass, it is tried again.
func (l *lookout) fail(err error) {
	if mayPass(err) {
		l.file.Failed()
	} else if last, _ := l.read(); last != nil && last.err != nil && last.err.Error() == err.Error() {
		l.publish(last)
		return
	}
	l.publish(&reading{err: err})
}

// mayPass returns whether err is the system's, which may be over without a change of the
// file: there are too few descriptors, or the disk does not answer. A file that appears is
// noticed.
func mayPass(err error) bool {
	_, system := errors.AsType[syscall.Errno](err)
	return system && !errors.Is(err, fs.ErrNotExist)
}
