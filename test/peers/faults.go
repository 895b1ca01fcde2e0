package main

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
)

// fault makes the first priority fail with strike. If then is set, it runs after that, until we
// stop observing.
type fault struct {
	name, what string
	secure     bool
	strike     func(*world) error
	then       func(context.Context, *world) error
}

var faults = []fault{
	{name: "killed", what: "the servers are killed: their connections close, and nothing listens on their ports", strike: kill},
	{name: "reset", what: "each connection is reset once; new connections work", strike: onFirst((*backend).reset)},
	{name: "GOAWAY", what: "the servers shut down gracefully: they send GOAWAY on each connection and stop listening", strike: onFirst((*backend).drain)},
	{name: "NOT_SERVING", what: "the health service reports NOT_SERVING, but calls are still answered", strike: onFirst((*backend).setNotServing)},
	{name: "UNAVAILABLE", what: "each call is answered with UNAVAILABLE", strike: setBehavior(failWith(codes.Unavailable))},
	{name: "INTERNAL", what: "each call is answered with INTERNAL", strike: setBehavior(failWith(codes.Internal))},
	{name: "hang", what: "calls are not answered, but connections and pings still work", strike: setBehavior(hang)},
	{name: "half hang", what: "one of the two backends hangs", strike: hangOne},
	{name: "2 s slower", what: "each answer takes 2 s longer and so misses the deadline", strike: setBehavior(answerAfterDelay(2*time.Second + answerAfter))},
	{name: "full", what: "each of the two backends can answer 17 calls a second, one after the other", strike: onFirst((*backend).fill)},
	{name: "full, one killed", what: "the same, and one of the two is killed", strike: fillAndKillOne},
	{name: "no SYN answered", what: "connections are reset, and SYN packets are not answered", strike: noSYN},
	{name: "packets lost", what: "all packets are lost in both directions", strike: dropAll},
	{name: "lost one way", what: "all packets from the backends are lost, but packets to them arrive", strike: dropAnswers},
	{name: "TLS broken", what: "connections are reset, and on new ones, the backends present a certificate that the client does not trust", secure: true, strike: breakTLS},
	{name: "DNS changed", what: "the priority's name resolves to two other backends, and the old ones are killed", strike: move},
	{name: "restart", what: "the servers are killed and started again after 1 s", strike: kill, then: restartAfter(time.Second)},
	{name: "crash loop, 5 ms", what: "each connection is closed 5 ms after it is accepted", strike: crash(5 * time.Millisecond)},
	{name: "crash loop, 100 ms", what: "each connection is closed 100 ms after it is accepted", strike: crash(100 * time.Millisecond)},
	{name: "flapping", what: "the servers are down for 2 s and up for 2 s, repeatedly", strike: kill, then: flap(2 * time.Second)},
}

func noFault(*world) error { return nil }

func onFirst(f func(*backend)) func(*world) error {
	return func(w *world) error {
		for _, b := range w.first {
			f(b)
		}
		return nil
	}
}

var kill = onFirst((*backend).kill)

func setBehavior(behavior func(context.Context) error) func(*world) error {
	return onFirst(func(b *backend) { b.setBehavior(behavior) })
}

func crash(lifetime time.Duration) func(*world) error {
	return onFirst(func(b *backend) { b.crash(lifetime) })
}

func hangOne(w *world) error {
	w.first[0].setBehavior(hang)
	return nil
}

func fillAndKillOne(w *world) error {
	for _, b := range w.first {
		b.fill()
	}
	w.first[1].kill()
	return nil
}

func noSYN(w *world) error {
	return each(w.first, func(b *backend) error {
		err := b.dropReceived()
		b.reset()
		return err
	})
}

func dropAll(w *world) error {
	w.dropAnswers(w.first)
	return each(w.first, (*backend).dropReceived)
}

func dropAnswers(w *world) error {
	w.dropAnswers(w.first)
	return nil
}

func breakTLS(w *world) error {
	bad, err := newCertificate()
	if err != nil {
		return err
	}
	for _, b := range w.first {
		b.certificate.Store(bad)
		b.reset()
	}
	return nil
}

func move(w *world) error {
	w.publish(w.spare)
	return kill(w)
}

func restartAfter(pause time.Duration) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		if !wait(ctx, pause) {
			return nil
		}
		return each(w.first, (*backend).start)
	}
}

func flap(pause time.Duration) func(context.Context, *world) error {
	restart := restartAfter(pause)
	return func(ctx context.Context, w *world) error {
		for {
			if err := restart(ctx, w); err != nil || !wait(ctx, pause) {
				return err
			}
			if err := kill(w); err != nil {
				return err
			}
		}
	}
}

// wait returns true after pause, or false as soon as ctx is done.
func wait(ctx context.Context, pause time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	<-ctx.Done()
	return errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}
