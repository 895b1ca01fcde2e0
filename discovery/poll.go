package discovery

import (
	"context"
	"fmt"
	"time"
)

// Poll returns a source that calls fetch immediately, and then again one interval after each answer.
// The interval, which must be positive, is randomized by 10% so that the clients of a fleet do not
// all poll at the same time. Calls of fetch do not overlap unless the source is started more than
// once. If fetch returns an error, or an answer that the channel rejects, the last good answer stays
// in use, and fetch is called again with gRPC's backoff if that is shorter than the interval. When
// the channel no longer needs the source, the context is cancelled; fetch must then return, and its
// result is ignored.
func Poll(interval time.Duration, fetch func(context.Context) (Answer, error)) Source {
	return poller{interval, fetch}
}

type poller struct {
	interval time.Duration
	fetch    func(context.Context) (Answer, error)
}

func (p poller) Start(r *Receiver) (Started, error) {
	if err := p.Check(false); err != nil {
		return Started{}, err
	}
	started := Refresh{Every: p.interval}.LookUp(r, p.fetch)
	started.ResolveNow = nil
	return started, nil
}

func (p poller) Check(bool) error {
	if p.interval <= 0 {
		return fmt.Errorf("the poll interval is %v, want more than 0", p.interval)
	}
	return nil
}
