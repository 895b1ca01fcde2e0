package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/understudy-lb/understudy/internal/envoy/cds"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// store keeps the served clusters in a file, in case we're restarted while their sources are
// invalid. Entries are checked as strictly as endpoints files. A nil store doesn't keep anything.
type store struct {
	path    string
	limit   int64 // size of the file in bytes
	log     *slog.Logger
	offered map[string]servedCluster
	failed  atomic.Bool // the last write failed

	latest chan map[string]servedCluster
	done   chan struct{}
}

type entry struct {
	Source  string          `json:"file"`
	Lost    bool            `json:"lost,omitempty"` // the cluster has vanished from all sources
	Cluster json.RawMessage `json:"cluster"`        // a Cluster in JSON

	parsed *clusterConfig
}

const (
	storeName = "clusters.json"
	maxStore  = 256 << 20
)

func openStore(directory string, log *slog.Logger) (*store, []entry, error) {
	if directory == "" {
		return nil, nil, nil
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, nil, fmt.Errorf("cache: %w", err)
	}
	s := &store{path: filepath.Join(directory, storeName), limit: maxStore, log: log, latest: make(chan map[string]servedCluster, 1), done: make(chan struct{})}
	var list []json.RawMessage
	if err := s.read(&list); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Error("cache cannot be read", "error", fmt.Sprintf("%s: %v", s.path, err))
	}
	var entries []entry
	for _, data := range list {
		e, err := parseEntry(data)
		if err != nil {
			log.Error("cache entry ignored", "error", fmt.Sprintf("%s: %v", s.path, err))
			continue
		}
		entries = append(entries, e)
	}
	go s.run()
	return s, entries, nil
}

func (s *store) read(list *[]json.RawMessage) error {
	info, err := os.Lstat(s.path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	case info.Size() > s.limit:
		return fmt.Errorf("has %d bytes, want at most %d", info.Size(), s.limit)
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, list)
}

func parseEntry(data []byte) (entry, error) {
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return entry{}, err
	}
	cluster := new(clusterv3.Cluster)
	if err := protojson.Unmarshal(e.Cluster, cluster); err != nil {
		return entry{}, err
	}
	if _, err := cds.Read(cluster); err != nil {
		return entry{}, err
	}
	e.parsed = newClusterConfig(cluster)
	if e.parsed.endpoints == nil {
		return e, nil
	}
	_, _, err := messages.Read(e.parsed.endpoints)
	return e, err
}

func (s *store) offer(served map[string]servedCluster) {
	// It takes seconds to write thousands of clusters, so we do it in the background. If the last
	// write failed, we try again even if nothing has changed since.
	if s == nil || maps.Equal(served, s.offered) && !s.failed.Load() {
		return
	}
	s.offered = maps.Clone(served)
	select {
	case <-s.latest: // outdated before it was written
	default:
	}
	s.latest <- s.offered
}

func (s *store) close() {
	// If we get killed while waiting here, the file stays the way it was.
	if s == nil {
		return
	}
	close(s.latest)
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		s.log.Error("cache is still being written, and may not have the last changes")
	}
}

func (s *store) run() {
	defer close(s.done)
	for served := range s.latest {
		err := s.write(served)
		if err != nil && !s.failed.Load() {
			s.log.Error("cache cannot be written", "error", err.Error())
		}
		s.failed.Store(err != nil)
	}
}

func (s *store) write(served map[string]servedCluster) error {
	// The file is replaced in one step, so a crash leaves either the old or the new one behind.
	entries := make([]entry, 0, len(served))
	for _, name := range slices.Sorted(maps.Keys(served)) {
		c := served[name]
		message, err := protojson.Marshal(c.cluster.Cluster)
		if err != nil {
			return err
		}
		entries = append(entries, entry{Source: c.source, Lost: !c.missingSince.IsZero(), Cluster: message})
	}
	data, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	if int64(len(data)) > s.limit {
		return fmt.Errorf("%s: would have %d bytes, want at most %d", s.path, len(data), s.limit)
	}
	f, err := os.Create(s.path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	return err
}
