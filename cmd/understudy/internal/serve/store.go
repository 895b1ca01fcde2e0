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

// store keeps the served clusters in a directory. After a restart, a cluster is served from there
// while its file is broken. Entries are validated as strictly as endpoints files.
type store struct {
	directory string
	log       *slog.Logger
	kept      map[string]served
	failed    map[string]string
}

type entry struct {
	File    origin          `json:"file"`
	Lost    bool            `json:"lost,omitempty"`   // the cluster has vanished from all files
	Cluster json.RawMessage `json:"cluster"`          // JSON of the message, see Config
	Config  bool            `json:"config,omitempty"` // Cluster is a Cluster, and not a ClusterLoadAssignment

	given *given
}

const (
	maxEntry   = 64 << 20 // bytes; more than clusterfile.MaxSize, because JSON is longer
	maxStore   = 1 << 30
	maxEntries = 10_000
	// An entry is first written to a file with this prefix, and then renamed.
	temporary = ".new-"
)

func openStore(directory string, log *slog.Logger) (*store, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return &store{directory, log, make(map[string]served), make(map[string]string)}, nil
}

// load returns the entries whose origin is wanted. It logs and ignores files that are no valid
// entries, but does not remove them.
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
			_ = os.Remove(path) // a process was killed while it wrote this file
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

// readEntry returns the entry in a file, and the number of bytes read. A file of more than most
// bytes is an error.
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
		return entry{}, err // the name is invalid
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

// keep makes the directory hold exactly these clusters, unless ctx ends first. The next call
// retries failed writes and removals.
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

// holds reports whether the directory already holds the cluster unchanged.
func (s *store) holds(name string, is served) bool {
	was, known := s.kept[name]
	return known && was.file == is.file && was.lost.IsZero() == is.lost.IsZero() && (was.cluster == is.cluster || was.cluster.equal(is.cluster))
}

// note logs that a cluster could not be stored or removed, once for each error.
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

// write replaces an entry atomically, so that a crash leaves the old or the new one.
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

// entryName returns the name of a cluster's file. It is a hash, because the name of a cluster may
// be any string.
func entryName(cluster string) string {
	sum := sha256.Sum256([]byte(cluster))
	return hex.EncodeToString(sum[:16]) + ".json"
}
