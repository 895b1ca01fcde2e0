// Package clusterfile reads files of endpoints or clusters and reports the positions of mistakes.
// Package discovery/file documents the format.
package clusterfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// MaxSize is the maximum size of a file in bytes. 16 MiB of YAML holds about 100,000 endpoints.
const MaxSize = 16 << 20

// Load reads and validates the file at path. It sets defaults, so that a control plane can serve
// the result to clients. If the file contains a list of clusters, all of them must be valid.
//
// Errors contain the path. If the content is invalid, the error is a *messages.Invalid.
func Load(path string) (*Document, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return load(path, data)
}

// LoadFrom is like Load, but reads from r. Errors contain name instead of a path, and name is also
// the default name of the cluster.
func LoadFrom(r io.Reader, name string) (*Document, error) {
	data, err := readAll(r, name)
	if err != nil {
		return nil, err
	}
	return load(name, data)
}

func load(path string, data []byte) (*Document, error) {
	doc, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	empty, err := doc.check()
	return doc, cmp.Or(err, empty)
}

// LoadEach is like Load, but clusters that list no endpoint do not make the others invalid: empty is
// their error. LoadEach also leaves out of the messages what is not read, and notes describes it.
func LoadEach(path string) (doc *Document, empty, notes, err error) {
	data, err := Read(path)
	if err != nil {
		return nil, nil, nil, err
	}
	doc, d, err := parse(path, data)
	if err == nil {
		empty, err = doc.check()
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if d.leavesOut = d.hasUnread; d.leavesOut {
		d.decode(doc)
	}
	return doc, empty, d.notes.Err(), nil
}

// check returns the problems of the clusters without endpoints, and an error if another cluster is
// invalid.
func (d *Document) check() (empty, err error) {
	var invalid, noEndpoints messages.Invalid
	seen := make(map[messages.Position]bool)
	for _, name := range d.names {
		invalid.Merge("", d.clusters[name].Err)
		noEndpoints.Merge("", d.clusters[name].NoEndpoints)
		for _, e := range cds.Resolve(name, d.Find).List {
			// Another file may have a missing cluster, and the error of an invalid one is known.
			c := d.clusters[e.Name]
			if at, ok := d.reference(e); ok && e.Err != nil && c != nil && c.Err == nil && !seen[at] {
				seen[at] = true
				invalid.AddAt(at, "%v", e.Err)
			}
		}
	}
	if invalid.Err() != nil {
		invalid.Merge("", &noEndpoints)
	}
	return noEndpoints.Err(), invalid.Err()
}

// Read returns the content of the file at path, which must not exceed MaxSize. It returns an error
// for a pipe, because opening a pipe would block until there is a writer.
func Read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, reason(err))
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory, want an endpoints file", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a regular file", path)
	case info.Size() > MaxSize:
		return nil, tooLarge(path, info.Size())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, reason(err))
	}
	defer func() { _ = f.Close() }()
	return readAll(f, path)
}

func readAll(r io.Reader, path string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, reason(err))
	}
	if len(data) > MaxSize {
		return nil, tooLarge(path, int64(len(data)))
	}
	return data, nil
}

func tooLarge(path string, size int64) error {
	return fmt.Errorf("%s: has %d bytes or more, want at most %d (16 MiB)", path, size, MaxSize)
}

// reason returns the cause of an error from package os, which unlike the error does not contain the
// path.
func reason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}
