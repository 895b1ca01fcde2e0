package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/understudy-lb/understudy/internal/cds"
	"github.com/understudy-lb/understudy/internal/envoy"
)

// store keeps the clusters that are served in a directory, for the next process: one
// whose file is broken by then is served as it was. What is read back is checked as
// strictly as a file.
type store struct {
	directory string
	log       *slog.Logger
	kept      map[string]served // by name: what is in the directory
	failed    map[string]string // by name: why it could not be kept, as logged last
}

// entry is a cluster that is kept, and the content of its file in JSON.
type entry struct {
	File    origin          `json:"file"`             // that gave it
	Lost    bool            `json:"lost,omitempty"`   // no file gives it any more
	Cluster json.RawMessage `json:"cluster"`          // its endpoints, or
	Config  bool            `json:"config,omitempty"` // where they come from

	given *given
}

const (
	maxEntry   = 64 << 20 // bytes: more than clusterfile.MaxSize, since JSON is longer
	maxStore   = 1 << 30  // bytes of all entries
	maxEntries = 10_000
	// Entries are written under another name first.
	temporary = ".new-"
)

func openStore(directory string, log *slog.Logger) (*store, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return &store{directory, log, make(map[string]served), make(map[string]string)}, nil
}

// load returns the entries of wanted files. What is no entry is logged, and left.
func (s *store) load(wanted func(origin) bool) []entry {
	list, err := os.ReadDir(s.directory)
	if err != nil {
		s.log.Error("cache cannot be read", "error", err.Error())
	}
	var entries []entry
	left := int64(maxStore)
	for i, item := range list {
		path := filepath.Join(s.directory, item.Name())
		if strings.HasPrefix(item.Name(), temporary) {
			_ = os.Remove(path) // of a process that was killed as it wrote
			continue
		}
		if i == maxEntries {
			s.log.Error("cache holds too many clusters, the rest is ignored", "want_at_most", maxEntries)
			break
		}
		e, size, err := readEntry(path, min(left, maxEntry))
		left -= size
		if err != nil {
			s.log.Error("cache entry ignored", "error", fmt.Sprintf("%s: %v", path, err))
			continue
		}
		if wanted(e.File) {
			kept := served{cluster: e.given, file: e.File}
			if e.Lost {
				kept.lost = time.Now()
			}
			s.kept[e.given.name()] = kept
			entries = append(entries, e)
		}
	}
	return entries
}

// readEntry returns the entry in the file at path, and how many bytes were read.
func readEntry(path string, most int64) (e entry, size int64, err error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return entry{}, 0, err
	case !info.Mode().IsRegular():
		return entry{}, 0, errors.New("is not a regular file")
	case info.Size() > most:
		return entry{}, 0, fmt.Errorf("has %d bytes, want at most %d", info.Size(), most)
	}
	f, err := os.Open(path)
	if err != nil {
		return entry{}, 0, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return entry{}, int64(len(data)), err
	}
	e, err = parseEntry(data)
	if err == nil && filepath.Base(path) != entryName(e.given.name()) {
		err = fmt.Errorf("holds cluster %q, whose entry has another name", e.given.name())
	}
	return e, int64(len(data)), err
}

// parseEntry returns the entry in data if it keeps all rules of a cluster.
func parseEntry(data []byte) (entry, error) {
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return entry{}, err
	}
	e.given = &given{endpoints: new(endpointv3.ClusterLoadAssignment)}
	if e.Config {
		e.given = &given{config: new(clusterv3.Cluster)}
	}
	if err := protojson.Unmarshal(e.Cluster, e.given.message()); err != nil {
		return entry{}, err
	}
	if e.given.name() == "" {
		return entry{}, errors.New("the cluster has no name")
	}
	if _, err := cds.Read(&clusterv3.Cluster{Name: e.given.name(), ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}}); err != nil {
		return entry{}, err // of the name
	}
	if e.Config {
		if _, err := cds.Read(e.given.config); err != nil {
			return entry{}, err
		}
		e.given = givenBy(e.given.config)
		return e, nil
	}
	return e, envoy.Validate(e.given.endpoints)
}

// keep makes the directory hold these clusters, until ctx ends. What fails is tried again
// the next time.
func (s *store) keep(ctx context.Context, now map[string]served) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if ctx.Err() != nil {
			s.log.Error("the cache is not complete, since there was no time left to write it")
			return
		}
		is := now[name]
		if s.holds(name, is) {
			s.kept[name] = is
			continue
		}
		err := s.write(name, is)
		if s.note(name, err); err == nil {
			s.kept[name] = is
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.kept)) {
		if _, still := now[name]; still {
			continue
		}
		err := os.Remove(filepath.Join(s.directory, entryName(name)))
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if s.note(name, err); err == nil {
			delete(s.kept, name)
		}
	}
}

// holds reports whether the directory holds a cluster as it is.
func (s *store) holds(name string, is served) bool {
	was, known := s.kept[name]
	return known && was.file == is.file && was.lost.IsZero() == is.lost.IsZero() && (was.cluster == is.cluster || was.cluster.equal(is.cluster))
}

// note logs that a cluster could not be kept, or removed, once.
func (s *store) note(name string, err error) {
	if err == nil {
		delete(s.failed, name)
		return
	}
	if text := err.Error(); s.failed[name] != text {
		s.failed[name] = text
		s.log.Error("cache entry cannot be written", "cluster", name, "error", text)
	}
}

// write replaces an entry: a reader, even one after a crash, sees the old or the new.
func (s *store) write(name string, c served) error {
	cluster, err := protojson.Marshal(c.cluster.message())
	if err != nil {
		return err
	}
	data, err := json.Marshal(entry{File: c.file, Lost: !c.lost.IsZero(), Cluster: cluster, Config: c.cluster.config != nil})
	if err != nil {
		return err
	}
	if len(data) > maxEntry {
		return fmt.Errorf("cluster has %d bytes in JSON, want at most %d", len(data), maxEntry)
	}
	f, err := os.CreateTemp(s.directory, temporary+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.directory, entryName(name)))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// entryName is the name of a cluster's file. A cluster's own name may be anything.
func entryName(cluster string) string {
	sum := sha256.Sum256([]byte(cluster))
	return hex.EncodeToString(sum[:16]) + ".json"
}
