package main

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
)

// fault is a failure of the first priority.
type fault struct {
	name, what string
	secure     bool // the connections use TLS
	strike     func(*world) error
	then       func(context.Context, *world) error
}

var faults = []fault{
	{name: "killed", what: "the servers are killed: their connections close, and nothing listens on their ports", strike: kill},
	{name: "reset", what: "each connection is reset once; new connections work", strike: onFirst((*backend).reset)},
	{name: "GOAWAY", what: "the servers shut down gracefully: they send GOAWAY on each connection and stop listening", strike: onFirst((*backend).drain)},
	{name: "NOT_SERVING", what: "the health service reports NOT_SERVING, but calls are still answered", strike: onFirst((*backend).stopsServing)},
	{name: "UNAVAILABLE", what: "each call is answered with UNAVAILABLE", strike: behave(fails(codes.Unavailable))},
	{name: "INTERNAL", what: "each call is answered with INTERNAL", strike: behave(fails(codes.Internal))},
	{name: "hang", what: "calls are not answered, but connections and pings still work", strike: behave(hangs)},
	{name: "half hang", what: "one of the two backends hangs", strike: halfHangs},
	{name: "2 s slower", what: "each answer takes 2 s longer and so misses the deadline", strike: behave(takes(2*time.Second + answerAfter))},
	{name: "no SYN answered", what: "connections are reset, and SYN packets are not answered", strike: noSYN},
	{name: "packets lost", what: "all packets are lost in both directions", strike: loseAll},
	{name: "lost one way", what: "all packets from the backends are lost, but packets to them arrive", strike: loseAnswers},
	{name: "TLS broken", what: "connections are reset, and on new ones, the backends present a certificate that the client does not trust", secure: true, strike: breakTLS},
	{name: "DNS changed", what: "the priority's name resolves to two other backends, and the old ones are killed", strike: move},
	{name: "restart", what: "the servers are killed and started again after 1 s", strike: kill, then: restartAfter(time.Second)},
	{name: "crash loop, 5 ms", what: "each connection is closed 5 ms after it is accepted", strike: crash(5 * time.Millisecond)},
	{name: "crash loop, 100 ms", what: "each connection is closed 100 ms after it is accepted", strike: crash(100 * time.Millisecond)},
	{name: "flapping", what: "the servers are down for 2 s and up for 2 s, repeatedly", strike: kill, then: flap(2 * time.Second)},
}

// calm causes no fault. The control uses it.
func calm(*world) error { return nil }

func onFirst(f func(*backend)) func(*world) error {
	return func(w *world) error {
		for _, b := range w.first {
			f(b)
		}
		return nil
	}
}

var kill = onFirst((*backend).kill)

func behave(behavior func(context.Context) error) func(*world) error {
	return onFirst(func(b *backend) { b.behave(behavior) })
}

func crash(lifetime time.Duration) func(*world) error {
	return onFirst(func(b *backend) { b.crash(lifetime) })
}

func halfHangs(w *world) error {
	w.first[0].behave(hangs)
	return nil
}

func noSYN(w *world) error {
	return each(w.first, func(b *backend) error {
		err := b.loseArrivals()
		b.reset()
		return err
	})
}

func loseAll(w *world) error {
	w.loseAnswers(w.first)
	return each(w.first, (*backend).loseArrivals)
}

func loseAnswers(w *world) error {
	w.loseAnswers(w.first)
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
		if !passed(ctx, pause) {
			return nil
		}
		return each(w.first, (*backend).start)
	}
}

func flap(pause time.Duration) func(context.Context, *world) error {
	restart := restartAfter(pause)
	return func(ctx context.Context, w *world) error {
		for {
			if err := restart(ctx, w); err != nil || !passed(ctx, pause) {
				return err
			}
			if err := kill(w); err != nil {
				return err
			}
		}
	}
}

// passed waits for the duration pause. It returns false if the context ends earlier.
func passed(ctx context.Context, pause time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	<-ctx.Done()
	return errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}
