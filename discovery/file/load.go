package file

import (
	"errors"
	"fmt"
	"io"
	"os"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/understudy-lb/understudy/topology"
)

// MaxSize is the largest size of a file in bytes: 16 MiB, enough for about 100,000
// endpoints in YAML.
const MaxSize = 16 << 20

// Load reads and checks the file at path as the resolver does, by all rules of a
// cluster. It returns the cluster, with what a file may leave out filled in, so that it
// may be served to other clients as it is. The error names the file. For mistakes
// inside the file it is an *Error with all the places. Load is safe for concurrent use.
func Load(path string) (*endpointv3.ClusterLoadAssignment, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return load(path, data)
}

// LoadFrom is Load for the content of r, which it reads to its end. The name stands for
// the path in errors, and names the cluster where the content does not.
func LoadFrom(r io.Reader, name string) (*endpointv3.ClusterLoadAssignment, error) {
	data, err := readAll(r, name)
	if err != nil {
		return nil, err
	}
	return load(name, data)
}

func load(path string, data []byte) (*endpointv3.ClusterLoadAssignment, error) {
	doc, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	if doc.clusters != nil {
		return nil, fmt.Errorf("%s: holds clusters, want the endpoints of one (a ClusterLoadAssignment)", path)
	}
	if err := topology.Validate(doc.cluster); err != nil {
		return nil, doc.explain(err)
	}
	return doc.cluster, nil
}

// read returns the content of the file at path. It looks before it opens, because
// to open a pipe waits for a writer, and never reads more than MaxSize.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, reason(err))
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory, want a file of endpoints", path)
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

// reason returns err without the path that package os puts into it.
func reason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}
