package file

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy/filewatch"
)

// watched is the source of a file's content. All channels that use the file share it. If each of
// 1,000 channels watched the file on its own, checking it this often would take much of a core, and
// each copy of the content would take megabytes.
type watched struct{ path string }

// content is what a file contains, or the reason why we can't use it. It's only a Source so that we
// can pass it through discovery.Shared.
type content struct {
	discovery.Source                       // always nil
	doc              *clusterfile.Document // nil if err is set
	version          string
	err              error
}

func (w watched) Start(r *discovery.Receiver) (discovery.Started, error) {
	ctx, cancel := context.WithCancel(context.Background())
	reader := &fileReader{watched: w, receiver: r, file: filewatch.NewFile(w.path)}
	go reader.run(ctx)
	return discovery.Started{Close: cancel}, nil
}

func (watched) Check(bool) error { return nil }

type fileReader struct {
	watched
	receiver     *discovery.Receiver
	file         *filewatch.File
	last         *content // nil until the first attempt to read the file
	lastParsed   *content // nil until an attempt succeeds
	lastChecksum [sha256.Size]byte
}

func (f *fileReader) run(ctx context.Context) {
	for {
		due, err := f.file.Look()
		if err != nil {
			logger.Warning(Scheme + ": " + err.Error())
			if f.last == nil {
				f.publish(&content{err: err})
			}
		}
		if due {
			f.read()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(f.file.Next()):
		}
	}
}

func (f *fileReader) read() {
	data, err := clusterfile.Read(f.path)
	if err != nil {
		if _, isSystem := errors.AsType[syscall.Errno](err); isSystem { // may go away without a change to the file
			f.file.Failed()
		}
		if f.last == nil || f.last.err == nil || f.last.err.Error() != err.Error() {
			f.publish(&content{err: err})
		}
		return
	}
	if !f.file.Read() {
		return
	}
	if checksum := sha256.Sum256(data); f.lastParsed == nil || checksum != f.lastChecksum {
		f.lastParsed, f.lastChecksum = &content{version: fmt.Sprintf("%.4x", checksum)}, checksum
		f.lastParsed.doc, f.lastParsed.err = clusterfile.Parse(f.path, data)
	}
	f.publish(f.lastParsed)
}

// publish passes the content to all channels, unless they already have it.
func (f *fileReader) publish(c *content) {
	if c != f.last {
		f.last = c
		f.receiver.Mechanisms([]discovery.Mechanism{{Name: f.path, Source: c}})
	}
}
