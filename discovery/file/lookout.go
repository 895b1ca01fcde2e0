package file

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/understudy-lb/understudy/internal/backoff"
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
	looked   bool
	seen     fs.FileInfo // how the file looked last, nil if there was none
	rest     filewatch.Rest
	due      time.Time // when the file is to be read, zero where it is not
	again    bool      // it is then to be read once more, because its time may not tell of a change
	attempts int       // how often in a row it could not be read
	restless time.Time // since when it has not been read because it is written to
	parsed   reading   // the last content
	sum      [sha256.Size]byte
}

// reading is what was found in a file, the same for all channels.
type reading struct {
	known   bool      // the content is
	doc     *document // nil where err says why there is none
	version string    // of the content
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
		l = &lookout{of: of, done: make(chan struct{}), news: make(chan struct{})}
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

// isCurrent returns whether the file still looks as it did then.
func (l *lookout) isCurrent() bool {
	info, err := os.Stat(l.of.path)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || l.info == nil {
		return err != nil && l.info == nil
	}
	return !filewatch.Differ(l.info, info)
}

// publish passes on what was found, which may be what it was.
func (l *lookout) publish(r *reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.info = l.seen
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
		if notice == filewatch.Moved && w.Of(filepath.Base(l.of.path)) != filewatch.Moved {
			notice = filewatch.Changed // a directory or a link has come, and not the file alone
		}
		if l.look(notice); !l.due.IsZero() {
			soon.Reset(time.Until(l.due))
		}
	}
}

// step is that of the coarsest clock of a file system. Of two writes within a step the
// second may leave both the size and the time of the file as they were.
const step = 2 * time.Second

// look looks at the file, and reads it if that is due.
func (l *lookout) look(notice filewatch.Notice) {
	now := time.Now()
	info, err := os.Stat(l.of.path)
	if l.changed(info, err) || notice != filewatch.Looked {
		l.due, l.again, l.attempts = now, true, 0
	}
	if l.due.IsZero() || now.Before(l.due) {
		return
	}
	l.due = time.Time{}
	if err != nil {
		l.rest = filewatch.Rest{}
		l.fail(fmt.Errorf("%s: %w", l.of.path, reason(err)))
		return
	}
	if info.Mode().IsRegular() {
		if wait := l.rest.Look(l.of.path, info, notice); wait > 0 {
			l.wait(wait)
			return
		}
	}
	l.take(info)
}

// changed returns whether the file looks other than at the last call.
func (l *lookout) changed(info fs.FileInfo, err error) bool {
	looked, before := l.looked, l.seen
	if l.looked, l.seen = true, info; err != nil {
		l.seen = nil
	}
	return !looked || (before == nil) != (l.seen == nil) || l.seen != nil && filewatch.Differ(before, l.seen)
}

// wait puts the reading off, because the file may not be complete.
func (l *lookout) wait(d time.Duration) {
	const long = 10 * time.Second
	l.due = time.Now().Add(d)
	if l.restless.IsZero() {
		l.restless = time.Now()
	}
	if time.Since(l.restless) < long {
		return
	}
	l.restless = l.due.Add(time.Hour) // it is said once an hour
	err := fmt.Errorf("%s: has been written to for %v: want it to stand still, or to be replaced by rename", l.of.path, long)
	logger.Warning(Scheme + ": " + err.Error())
	if last, _ := l.read(); last == nil {
		l.publish(&reading{err: err})
	}
}

// take reads the file, which looked like that before.
func (l *lookout) take(info fs.FileInfo) {
	data, err := read(l.of.path)
	if err != nil {
		l.fail(err)
		return
	}
	if after, err := os.Stat(l.of.path); err != nil || filewatch.Differ(info, after) {
		l.due = time.Now() // it was changed while it was read
		return
	}
	l.restless, l.attempts = time.Time{}, 0
	if l.again {
		l.again, l.due = false, time.Now().Add(step)
	}
	if sum := sha256.Sum256(data); !l.parsed.known || sum != l.sum {
		l.sum = sum
		l.parsed = reading{known: true, version: fmt.Sprintf("%.4x", sum)}
		l.parsed.doc, l.parsed.err = parse(l.of.path, data)
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
		l.due = time.Now().Add(backoff.Delay(l.attempts, rand.Float64()))
		l.attempts++
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
