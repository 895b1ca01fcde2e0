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

	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// store keeps the served clusters in a directory. After a restart, a cluster is served from this
// directory while its file is invalid. Entries are validated as strictly as endpoints files.
type store struct {
	directory    string
	log          *slog.Logger
	stored       map[string]servedCluster
	loggedErrors map[string]string
}

type entry struct {
	File    origin          `json:"file"`
	Lost    bool            `json:"lost,omitempty"`   // the cluster has vanished from all files
	Cluster json.RawMessage `json:"cluster"`          // the message in JSON; Config says of which type
	Config  bool            `json:"config,omitempty"` // the message is a Cluster instead of a ClusterLoadAssignment

	parsed *clusterConfig
}

const (
	maxEntry   = 64 << 20 // in bytes; more than clusterfile.MaxSize, because JSON is longer
	maxStore   = 1 << 30
	maxEntries = 10_000
	// tempPrefix is the prefix of the temporary file to which an entry is written before it is
	// renamed.
	tempPrefix = ".new-"
)

func openStore(directory string, log *slog.Logger) (*store, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return &store{directory, log, make(map[string]servedCluster), make(map[string]string)}, nil
}

// load returns the entries whose origin this server serves. It logs and ignores files that are not
// valid entries, but does not remove them.
func (s *store) load(isServedHere func(origin) bool) []entry {
	list, err := os.ReadDir(s.directory)
	if err != nil {
		s.log.Error("cache cannot be read", "error", err.Error())
	}
	var entries []entry
	remaining := int64(maxStore)
	for i, item := range list {
		path := filepath.Join(s.directory, item.Name())
		if strings.HasPrefix(item.Name(), tempPrefix) {
			_ = os.Remove(path) // a process was killed while it wrote this file
			continue
		}
		if i == maxEntries {
			s.log.Error("cache holds too many clusters, the rest is ignored", "want_at_most", maxEntries)
			break
		}
		e, size, err := readEntry(path, min(remaining, maxEntry))
		remaining -= size
		if err != nil {
			s.log.Error("cache entry ignored", "error", fmt.Sprintf("%s: %v", path, err))
			continue
		}
		if isServedHere(e.File) {
			stored := servedCluster{cluster: e.parsed, file: e.File}
			if e.Lost {
				stored.missingSince = time.Now()
			}
			s.stored[e.parsed.name()] = stored
			entries = append(entries, e)
		}
	}
	return entries
}

// readEntry returns the entry in a file, and the number of bytes read. It returns an error if the
// file has more than maxSize bytes.
func readEntry(path string, maxSize int64) (e entry, size int64, err error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return entry{}, 0, err
	case !info.Mode().IsRegular():
		return entry{}, 0, errors.New("is not a regular file")
	case info.Size() > maxSize:
		return entry{}, 0, fmt.Errorf("has %d bytes, want at most %d", info.Size(), maxSize)
	}
	f, err := os.Open(path)
	if err != nil {
		return entry{}, 0, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxSize))
	if err != nil {
		return entry{}, int64(len(data)), err
	}
	e, err = parseEntry(data)
	if err == nil && filepath.Base(path) != entryName(e.parsed.name()) {
		err = fmt.Errorf("holds cluster %q, which belongs in an entry with another name", e.parsed.name())
	}
	return e, int64(len(data)), err
}

func parseEntry(data []byte) (entry, error) {
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return entry{}, err
	}
	e.parsed = &clusterConfig{endpoints: new(endpointv3.ClusterLoadAssignment)}
	if e.Config {
		e.parsed = &clusterConfig{config: new(clusterv3.Cluster)}
	}
	if err := protojson.Unmarshal(e.Cluster, e.parsed.message()); err != nil {
		return entry{}, err
	}
	if e.parsed.name() == "" {
		return entry{}, errors.New("the cluster has no name")
	}
	if _, err := cds.Read(&clusterv3.Cluster{Name: e.parsed.name(), ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}}); err != nil {
		return entry{}, err // the name is invalid
	}
	if e.Config {
		if _, err := cds.Read(e.parsed.config); err != nil {
			return entry{}, err
		}
		e.parsed = newClusterConfig(e.parsed.config)
		return e, nil
	}
	return e, messages.Validate(e.parsed.endpoints)
}

// save makes the directory hold exactly these clusters, unless ctx ends first. The next call
// retries failed writes and removals.
func (s *store) save(ctx context.Context, snapshot map[string]servedCluster) {
	for _, name := range slices.Sorted(maps.Keys(snapshot)) {
		if ctx.Err() != nil {
			s.log.Error("the cache is incomplete, because there was no time left to write it")
			return
		}
		cluster := snapshot[name]
		if s.isStored(name, cluster) {
			s.stored[name] = cluster
			continue
		}
		err := s.write(name, cluster)
		if s.logError(name, err); err == nil {
			s.stored[name] = cluster
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.stored)) {
		if _, exists := snapshot[name]; exists {
			continue
		}
		err := os.Remove(filepath.Join(s.directory, entryName(name)))
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if s.logError(name, err); err == nil {
			delete(s.stored, name)
		}
	}
}

// isStored reports whether the directory already holds the cluster unchanged.
func (s *store) isStored(name string, cluster servedCluster) bool {
	stored, known := s.stored[name]
	return known && stored.file == cluster.file && stored.missingSince.IsZero() == cluster.missingSince.IsZero() && (stored.cluster == cluster.cluster || stored.cluster.equal(cluster.cluster))
}

// logError logs that a cluster could not be stored or removed. It logs each error only once.
func (s *store) logError(name string, err error) {
	if err == nil {
		delete(s.loggedErrors, name)
		return
	}
	if text := err.Error(); s.loggedErrors[name] != text {
		s.loggedErrors[name] = text
		s.log.Error("cache entry cannot be written", "cluster", name, "error", text)
	}
}

// write replaces an entry atomically, so that a crash leaves either the old or the new entry.
func (s *store) write(name string, c servedCluster) error {
	cluster, err := protojson.Marshal(c.cluster.message())
	if err != nil {
		return err
	}
	data, err := json.Marshal(entry{File: c.file, Lost: !c.missingSince.IsZero(), Cluster: cluster, Config: c.cluster.config != nil})
	if err != nil {
		return err
	}
	if len(data) > maxEntry {
		return fmt.Errorf("cluster has %d bytes in JSON, want at most %d", len(data), maxEntry)
	}
	f, err := os.CreateTemp(s.directory, tempPrefix+"*")
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
