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

	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy/filewatch"
)

// fileReader watches and reads a file for all channels that use it. If each of 1,000 channels had
// its own fileReader, checking the file twice a second would take almost 5% of a core, and each
// copy of the content would take megabytes.
type fileReader struct {
	key   readerKey
	users int           // number of channels; guarded by fileReaders.mu
	done  chan struct{} // closed when no channel uses the file any more

	mu          sync.Mutex
	lastReading *reading      // nil until the file was read
	info        fs.FileInfo   // from the time of the last reading; nil if the file did not exist
	changed     chan struct{} // closed and replaced after each reading

	// The following fields are used only by run.
	file         *filewatch.File
	lastParsed   reading
	lastChecksum [sha256.Size]byte
}

// reading is the result of reading a file. All channels that use the file share it.
type reading struct {
	isRead  bool                  // whether the file could be read
	doc     *clusterfile.Document // nil if err is set
	version string
	err     error
}

type readerKey struct {
	path    string
	options filewatch.Options
}

var fileReaders = struct {
	mu    sync.Mutex
	byKey map[readerKey]*fileReader
}{byKey: make(map[readerKey]*fileReader)}

// join returns the fileReader of a file. The caller must call leave when it no longer needs the
// file.
func join(key readerKey) *fileReader {
	fileReaders.mu.Lock()
	defer fileReaders.mu.Unlock()
	l := fileReaders.byKey[key]
	if l == nil {
		l = &fileReader{key: key, file: filewatch.NewFile(key.path), done: make(chan struct{}), changed: make(chan struct{})}
		fileReaders.byKey[key] = l
		go l.run()
	}
	l.users++
	return l
}

func (l *fileReader) leave() {
	fileReaders.mu.Lock()
	defer fileReaders.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(fileReaders.byKey, l.key)
		close(l.done)
	}
}

// read returns the last reading, or nil if there is none yet. The returned Go channel is closed
// after the next reading.
func (l *fileReader) read() (*reading, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastReading, l.changed
}

func (l *fileReader) isCurrent() bool {
	info, err := os.Stat(l.key.path)
	if err != nil {
		info = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !filewatch.Differ(l.info, info)
}

// publish passes a reading to all channels, even if it is the same as the last one: a new channel may
// wait for it.
func (l *fileReader) publish(r *reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.info, l.lastReading = l.file.Seen(), r
	close(l.changed)
	l.changed = make(chan struct{})
}

// run reads the file immediately, and again whenever it may have changed.
func (l *fileReader) run() {
	w := filewatch.New(l.key.options, l.key.path)
	defer w.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ok := true; ok; ok = w.Wait(l.done, timer.C) {
		timer.Stop()
		l.check()
		if next := l.file.Next(); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

func (l *fileReader) check() {
	due, err := l.file.Look()
	if err != nil {
		logger.Warning(Scheme + ": " + err.Error())
		if last, _ := l.read(); last == nil {
			l.publish(&reading{err: err})
		}
	}
	if due {
		l.readFile()
	}
}

// readFile reads the file and publishes the result. It parses the content only if it has changed.
func (l *fileReader) readFile() {
	data, err := clusterfile.Read(l.key.path)
	if err != nil {
		l.fail(err)
		return
	}
	if !l.file.Read() {
		return
	}
	if checksum := sha256.Sum256(data); !l.lastParsed.isRead || checksum != l.lastChecksum {
		l.lastChecksum = checksum
		l.lastParsed = reading{isRead: true, version: fmt.Sprintf("%.4x", checksum)}
		l.lastParsed.doc, l.lastParsed.err = clusterfile.Parse(l.key.path, data)
	} else if last, _ := l.read(); last != nil && last.isRead {
		l.publish(last)
		return
	}
	parsed := l.lastParsed
	l.publish(&parsed)
}

// fail publishes the reason why the file cannot be read. If the reason may be temporary, fail
// schedules another attempt.
func (l *fileReader) fail(err error) {
	if isTemporary(err) {
		l.file.Failed()
	} else if last, _ := l.read(); last != nil && last.err != nil && last.err.Error() == err.Error() {
		l.publish(last)
		return
	}
	l.publish(&reading{err: err})
}

// isTemporary reports whether err is a system error that may end although the file does not change,
// such as a lack of file descriptors. A missing file is not temporary in this sense, because its
// creation will be noticed.
func isTemporary(err error) bool {
	_, isSyscallErr := errors.AsType[syscall.Errno](err)
	return isSyscallErr && !errors.Is(err, fs.ErrNotExist)
}
