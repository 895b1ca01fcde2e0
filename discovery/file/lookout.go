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

// lookout watches and reads a file for all channels that use it. If each of 1,000 channels had its
// own lookout, checking the file twice a second would take almost 5% of a core, and each copy of
// the content would take megabytes.
type lookout struct {
	of    watched
	users int           // guarded by lookouts.mu
	done  chan struct{} // closed when the last user leaves

	mu   sync.Mutex
	last *reading      // nil until the file was read
	info fs.FileInfo   // the file's info at the time of the last reading; nil if it did not exist
	news chan struct{} // closed and replaced at each reading

	// The fields below are used only by run.
	file   *filewatch.File
	parsed reading
	sum    [sha256.Size]byte
}

// reading is the result of reading a file. All channels share it.
type reading struct {
	known   bool                  // false if the file could not be read
	doc     *clusterfile.Document // nil if the file could not be read or is invalid, see err
	version string
	err     error
}

type watched struct {
	path    string
	options filewatch.Options
}

var lookouts = struct {
	mu  sync.Mutex
	all map[watched]*lookout
}{all: make(map[watched]*lookout)}

// join returns the lookout of a file. When the caller no longer needs it, it must call leave.
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

// read returns the last reading, or nil if there is none yet. The Go channel is closed after the
// next reading.
func (l *lookout) read() (*reading, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.news
}

func (l *lookout) isCurrent() bool {
	info, err := os.Stat(l.of.path)
	if err != nil {
		info = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !filewatch.Differ(l.info, info)
}

// publish passes a reading to all channels. If it is the same as the last one, publish only records
// the current size and time of the file.
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
			notice = filewatch.Changed // a directory or a link on the path has moved, not the file itself
		}
		l.look(notice)
		if next := l.file.Next(); !next.IsZero() {
			soon.Reset(time.Until(next))
		}
	}
}

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

// take reads the file and publishes the result. It does not parse unchanged content again.
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

// fail publishes the reason why the file cannot be read. If the reason may be temporary, the file
// is read again later.
func (l *lookout) fail(err error) {
	if mayPass(err) {
		l.file.Failed()
	} else if last, _ := l.read(); last != nil && last.err != nil && last.err.Error() == err.Error() {
		l.publish(last)
		return
	}
	l.publish(&reading{err: err})
}

// mayPass reports whether err is a system error that may end although the file does not change,
// such as a lack of file descriptors. A missing file is not such an error, because its creation
// will be noticed.
func mayPass(err error) bool {
	_, system := errors.AsType[syscall.Errno](err)
	return system && !errors.Is(err, fs.ErrNotExist)
}
