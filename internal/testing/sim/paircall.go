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

func (w *World) pairCall(waitForReady bool) {
	w.mu.Lock()
	cc, j := w.cc, w.judge
	j.calls++
	c := &call{start: time.Now(), number: j.calls}
	r := rand.New(rand.NewPCG(uint64(c.number), 2)) //nolint:gosec // draws the load
	w.mu.Unlock()
	var err error
	finish := func() {}
	if w.pair.streams {
		finish, err = w.pairStream(cc, c, waitForReady, r)
	} else {
		_, err = c.invoke(cc, w.pair.deadline, waitForReady)
	}
	address, sentAt := c.lastAttempt()
	w.mu.Lock()
	w.calls.add(address, err)
	if address == "" || status.Code(err) != codes.Canceled { // unless the client has canceled a call that was sent
		j.callEnded(c, address, sentAt, err)
	}
	w.mu.Unlock()
	if err != nil {
		w.Log.Repeat(fmt.Sprintf("call sent to %q: %v", address, err), "the first made %v ago", time.Since(c.start))
	}
	finish()
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

const firstMessage = 2 * time.Minute

// pairStream opens a stream and waits for its first message. finish waits until the backend or the
// client ends the stream, which may take hours.
func (w *World) pairStream(cc *grpc.ClientConn, c *call, waitForReady bool, r *rand.Rand) (finish func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	length, patience := time.Duration(r.Int64N(int64(20*time.Minute))), firstMessage
	if w.pair.cancelMode == 2 {
		length = 4 * time.Hour // longer than any fault
	}
	if w.pair.streamsHaveDeadline {
		ctx, cancel = context.WithTimeout(context.Background(), w.pair.deadline)
		length, patience = time.Duration(r.Int64N(int64(w.pair.deadline)/2)), 2*w.pair.deadline
	}
	timeout := time.AfterFunc(patience, cancel)
	stream, err := c.openStream(ctx, cc, length, waitForReady)
	timeout.Stop()
	if err != nil {
		cancel()
		return func() {}, err
	}
	return func() {
		defer cancel()
		defer time.AfterFunc(w.pair.streamTime(length, r), cancel).Stop()
		go func() {
			select {
			case <-w.pair.done:
				cancel()
			case <-ctx.Done():
			}
		}()
		if err := stream.RecvMsg(new(emptypb.Empty)); !errors.Is(err, io.EOF) && status.Code(err) != codes.Canceled {
			w.Log.Repeat(fmt.Sprintf("a stream to %s broke: %v", c.address, err), "the first after %v", time.Since(c.start))
		}
	}, nil
}

func (p *pair) streamTime(length time.Duration, r *rand.Rand) time.Duration {
	if p.cancelMode == 0 || p.cancelMode == 3 && r.IntN(2) == 0 {
		return 2 * length
	}
	return length / 2
}
