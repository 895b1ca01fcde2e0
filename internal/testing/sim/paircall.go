package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

func (w *World) pairCall(wait bool) {
	w.mu.Lock()
	cc, j := w.cc, w.judge
	j.made++
	c := &call{start: time.Now(), made: j.made}
	r := rand.New(rand.NewPCG(uint64(c.made), 2)) //nolint:gosec // draws the load
	w.mu.Unlock()
	var err error
	rest := func() {}
	if w.pair.streams {
		rest, err = w.pairStream(cc, c, wait, r)
	} else {
		_, err = c.make(cc, w.pair.deadline, wait)
	}
	to, at := c.sent()
	w.mu.Lock()
	w.calls.add(to, err)
	if to == "" || status.Code(err) != codes.Canceled { // the client has not canceled the call
		j.ended(c, to, at, err)
	}
	w.mu.Unlock()
	if err != nil {
		w.Log.Repeat(fmt.Sprintf("call sent to %q: %v", to, err), "the first made %v ago", time.Since(c.start))
	}
	rest()
}

func (c *Calls) add(to string, err error) {
	c.Made++
	switch {
	case err == nil:
		c.Answered++
	case to != "":
		c.Failed++
	default:
		c.Waited++
	}
}

// firstMessage is how long a client without a deadline waits for the first message of a stream.
const firstMessage = 2 * time.Minute

// pairStream begins a stream and waits for its answer. rest waits until the backend or the client
// ends the stream, which may take hours.
func (w *World) pairStream(cc *grpc.ClientConn, c *call, wait bool, r *rand.Rand) (rest func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	length, first := time.Duration(r.Int64N(int64(20*time.Minute))), firstMessage
	if w.pair.stay == 2 {
		length = 4 * time.Hour // longer than the faults last
	}
	if w.pair.limited {
		ctx, cancel = context.WithTimeout(context.Background(), w.pair.deadline)
		length, first = time.Duration(r.Int64N(int64(w.pair.deadline)/2)), 2*w.pair.deadline
	}
	impatient := time.AfterFunc(first, cancel)
	stream, err := c.open(ctx, cc, length, wait)
	impatient.Stop()
	if err != nil {
		cancel()
		return func() {}, err
	}
	return func() {
		defer cancel()
		defer time.AfterFunc(w.pair.enough(length, r), cancel).Stop()
		go func() {
			select {
			case <-w.pair.done:
				cancel()
			case <-ctx.Done():
			}
		}()
		if err := stream.RecvMsg(new(emptypb.Empty)); !errors.Is(err, io.EOF) && status.Code(err) != codes.Canceled {
			w.Log.Repeat(fmt.Sprintf("a stream to %s broke: %v", c.to, err), "the first after %v", time.Since(c.start))
		}
	}, nil
}

func (p *pair) enough(length time.Duration, r *rand.Rand) time.Duration {
	if p.stay == 0 || p.stay == 3 && r.IntN(2) == 0 {
		return 2 * length
	}
	return length / 2
}
