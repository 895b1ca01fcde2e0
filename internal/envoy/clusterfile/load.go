// Package clusterfile reads files of endpoints or clusters and reports the positions of mistakes.
// Package discovery/file documents the format.
package clusterfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
)

// MaxSize is the maximum size of a file in bytes. 16 MiB of YAML holds about 100,000 endpoints.
const MaxSize = 16 << 20

// Load reads and validates the file at path. It sets defaults, so that a control plane can serve
// the result to clients. If the file contains a list of clusters, all of them must be valid.
//
// Errors contain the path. If the content is invalid, the error is an *Error.
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
	if err == nil && empty != nil {
		err = empty.Err
	}
	return doc, err
}

// Empty has the clusters of a file that list no endpoint.
type Empty struct {
	Clusters []string
	Err      *Error
}

// LoadEach is like Load, but a cluster that lists no endpoint does not make the others invalid. If
// there are such clusters, empty is not nil. LoadEach also removes what is not read (see
// removeUnread), and notes describes it.
func LoadEach(path string) (doc *Document, empty *Empty, notes, err error) {
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
	return doc, empty, d.removeUnread(doc), nil
}

// check returns an error if a cluster is invalid, and the clusters without endpoints otherwise.
func (d *Document) check() (*Empty, error) {
	empty, problems := &Empty{Err: &Error{Path: d.path}}, &Error{Path: d.path}
	for _, name := range d.names {
		c := d.clusters[name]
		if located, ok := errors.AsType[*Error](c.Err); ok {
			problems.merge(located)
		} else if located, ok := errors.AsType[*Error](c.NoEndpoints); ok {
			empty.Clusters = append(empty.Clusters, name)
			empty.Err.merge(located)
		}
	}
	seen := make(map[position]bool)
	for _, name := range d.names {
		for _, e := range cds.Resolve(name, d.findValid).List {
			if at, ok := d.positionOfReference(e); e.Err != nil && ok && !seen[at] {
				seen[at] = true
				problems.add(at, "%v", e.Err)
			}
		}
	}
	if err := problems.err(); err != nil {
		problems.merge(empty.Err)
		return nil, problems.err()
	}
	if empty.Clusters == nil {
		return nil, nil
	}
	return empty, nil
}

// findValid is like Find, but a missing or invalid cluster counts as one without children: another
// file may have it, or its own error says what is wrong.
func (d *Document) findValid(name string) cds.Known {
	if c := d.clusters[name]; c != nil && c.Cluster != nil {
		return c.Known
	}
	return cds.Known{Cluster: new(cds.Cluster)}
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
