package discovery

import (
	"context"
	"time"
)

// Poll returns a source that calls ask at once, and again an interval after each return,
// give or take a tenth: the clients of a fleet must not all ask at the same time. The
// interval must be more than 0. Calls of ask never overlap, unless the source was
// started twice. An error leaves the last answer in use. The context ends when the
// channel needs no endpoints any more; ask must then return, and what it returns is
// ignored.
func Poll(interval time.Duration, ask func(context.Context) (Answer, error)) Source {
	return poller{interval, ask}
}

type poller struct {
	interval time.Duration
	ask      func(context.Context) (Answer, error)
}

// Start implements Source.
func (p poller) Start(r Receiver) (Watch, error) {
	ctx, cancel := context.WithCancel(context.Background())
	go p.run(ctx, r)
	return stopper(cancel), nil
}

func (p poller) run(ctx context.Context, r Receiver) {
	for {
		answer, err := p.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.Fail(err)
		default:
			_ = r.Update(answer) // the next answer comes anyway
		}
		wait := time.NewTimer(jittered(p.interval))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// stopper is a Watch that ends by a call.
type stopper func()

// Close implements Watch.
func (s stopper) Close() { s() }
