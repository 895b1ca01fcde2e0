package serve

import (
	"context"
	"maps"
	"time"
)

// clusterStore stores the served clusters so that the next process can load them. save may take
// seconds, and stops when ctx ends.
type clusterStore interface {
	save(ctx context.Context, snapshot map[string]servedCluster)
}

// saver saves clusters in the background, because writing thousands of clusters takes seconds.
type saver struct {
	snapshots chan map[string]servedCluster
	saveCtx   context.Context // ends stopTimeout after the server's context
	done      chan struct{}
}

func startSaver(ctx context.Context, k clusterStore) *saver {
	saveCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(stopTimeout, cancel)
		context.AfterFunc(saveCtx, func() { timer.Stop() })
	})
	s := &saver{snapshots: make(chan map[string]servedCluster), saveCtx: saveCtx, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer cancel()
		defer stop()
		for snapshot := range s.snapshots {
			if k != nil {
				k.save(saveCtx, snapshot)
			}
		}
	}()
	return s
}

// offer saves the clusters in the background, unless the saver is still busy with earlier clusters.
func (s *saver) offer(snapshot map[string]servedCluster) {
	select {
	case s.snapshots <- maps.Clone(snapshot):
	default: // the next reload offers the clusters again
	}
}

// stop saves the final clusters. It waits until they are saved, but no longer than stopTimeout
// after the end of the server's context.
func (s *saver) stop(snapshot map[string]servedCluster) {
	select {
	case s.snapshots <- snapshot:
	case <-s.saveCtx.Done():
	}
	close(s.snapshots)
	<-s.done
}
