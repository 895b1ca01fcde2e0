package discovery

import (
	"context"
	"fmt"
	"time"

	"github.com/understudy-lb/understudy/internal/net/xnet"
)

// Poll returns a source that calls fetch immediately, and then again one interval after each
// return. The interval, which must be positive, is randomized by 10% so that the clients of a fleet
// do not all poll at the same time. Calls of fetch do not overlap unless the source is started more
// than once. If fetch returns an error, the last good answer stays in use. When the channel no
// longer needs the source, the context is cancelled; fetch must then return, and its result is
// ignored.
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
	ctx, cancel := context.WithCancel(context.Background())
	go p.run(ctx, r)
	return Started{Close: cancel}, nil
}

func (p poller) Check(bool) error {
	if p.interval <= 0 {
		return fmt.Errorf("the poll interval is %v, want more than 0", p.interval)
	}
	return nil
}

func (p poller) run(ctx context.Context, r *Receiver) {
	for more := true; more; more = xnet.Rest(ctx, xnet.Jittered(p.interval)) {
		answer, err := p.fetch(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.Fail(err)
		default:
			_ = r.Update(answer) // no error handling is needed, because the next poll follows anyway
		}
	}
}
