package serve

import (
	"context"
	"maps"
	"time"
)

// keeper keeps what is served for the next process. It may take its time, until ctx ends.
type keeper interface {
	keep(ctx context.Context, now map[string]served)
}

// keeping has what is served kept beside what else is done: thousands of clusters take
// seconds.
type keeping struct {
	snapshots chan map[string]served
	late      context.Context // ends some time after the server's
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

// offer has this kept, unless what was offered before is not kept yet.
func (k *keeping) offer(now map[string]served) {
	select {
	case k.snapshots <- maps.Clone(now):
	default: // it is offered again soon
	}
}

// end has this kept at last, for which there is not much time.
func (k *keeping) end(now map[string]served) {
	select {
	case k.snapshots <- now:
	case <-k.late.Done():
	}
	close(k.snapshots)
	<-k.ended
}
