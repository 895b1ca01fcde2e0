package serve

import (
	"context"
	"maps"
	"time"
)

// keeper stores the clusters for the next process. keep may take long, but stops when ctx ends.
type keeper interface {
	keep(ctx context.Context, now map[string]served)
}

// keeping stores clusters in the background, because writing thousands of clusters takes seconds.
type keeping struct {
	snapshots chan map[string]served
	late      context.Context // ends some time after the server's context
	ended     chan struct{}
}

func startKeeping(ctx context.Context, k keeper) *keeping {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(stopPatience, cancel)
		context.AfterFunc(late, func() { timer.Stop() })
	})
	to := &keeping{snapshots: make(chan map[string]served), late: late, ended: make(chan struct{})}
	go func() {
		defer close(to.ended)
		defer cancel()
		defer stop()
		for now := range to.snapshots {
			if k != nil {
				k.keep(late, now)
			}
		}
	}()
	return to
}

// offer stores the clusters in the background, unless the previous ones are still being stored.
func (k *keeping) offer(now map[string]served) {
	select {
	case k.snapshots <- maps.Clone(now):
	default: // the next reload offers them again
	}
}

// end stores the final clusters. It waits until they are stored, but only for a short time after
// the server's context has ended.
func (k *keeping) end(now map[string]served) {
	select {
	case k.snapshots <- now:
	case <-k.late.Done():
	}
	close(k.snapshots)
	<-k.ended
}
