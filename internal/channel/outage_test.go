package channel_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy"
)

// Every priority is connected, and all calls fail: the log says so once, and when it is over.
func TestOutageOfEveryPriorityIsLogged(t *testing.T) {
	for name, test := range map[string]struct {
		target, reason string
		fault          func(context.Context) error
	}{
		"errors":       {"failover:///tier:///a2,tier:///b2", "p0 tier:///a2 takes only probes: broken; p1 tier:///b2 has no good answers", fails(codes.Internal)},
		"hang":         {"failover:///tier:///a2,tier:///b2", "p0 tier:///a2 takes only probes: hanging; p1 tier:///b2 has no good answers", hangs},
		"three":        {"failover:///tier:///a1,tier:///b1,tier:///c1", "p0 tier:///a1 takes only probes: broken; p1 tier:///b1 takes only probes: broken; p2 tier:///c1 has no good answers", fails(codes.Internal)},
		"one priority": {"failover:///tier:///a1", "p0 tier:///a1 has no good answers", fails(codes.Unavailable)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, r := newQueues(t, 20, "a0", "a1", "b0", "b1", "c0"), &logRecords{}
				q.fault = func(ctx context.Context, _ string, since time.Duration) error {
					if since > 20*time.Second && since < 80*time.Second {
						err := test.fault(ctx)
						time.Sleep(time.Millisecond) // on a network, a client's deadline is over before the server says so
						return err
					}
					return nil
				}
				o := understudy.Recommended()
				o.Logger = slog.New(r)
				channels := q.channels(1, o, test.target)
				q.send(channels, 20, 140*time.Second)
				lines := slices.DeleteFunc(r.take(true), func(line string) bool { return !strings.HasPrefix(line, "calls ") })
				if len(lines) != 2 || !strings.Contains(lines[0], test.reason) || !strings.HasPrefix(lines[1], "calls succeed ") {
					t.Errorf("logged %q, want that calls fail because %q, and that they succeed", lines, test.reason)
				}
			})
		})
	}
}

// A client that gets a good answer now and then during an outage does not log each.
func TestOutageWithFewGoodAnswersIsLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, r := newQueues(t, 20, "a0"), &logRecords{}
		var n atomic.Int64
		q.fault = func(context.Context, string, time.Duration) error {
			if n.Add(1)%50 != 0 {
				return status.Error(codes.Internal, "broken")
			}
			return nil
		}
		o := understudy.Recommended()
		o.Logger = slog.New(r)
		q.send(q.channels(1, o, "failover:///tier:///a1"), 50, 5*time.Minute)
		if n := len(slices.DeleteFunc(r.take(false), func(m string) bool { return !strings.HasPrefix(m, "calls ") })); n > 62 {
			t.Errorf("logged %d times in 5 minutes, want at most twice in 10 s", n)
		}
	})
}

// Connections are lost during an outage, and calls fail as before when they are back: nothing has
// succeeded.
func TestOutageDoesNotEndWithConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, r := newQueues(t, 20, "a0", "b0"), &logRecords{}
		q.fault = func(_ context.Context, _ string, since time.Duration) error {
			if since > 20*time.Second {
				return status.Error(codes.Internal, "broken")
			}
			return nil
		}
		o := understudy.Recommended()
		o.Logger = slog.New(r)
		time.AfterFunc(40*time.Second, func() { q.setDown(true, "b0") })
		time.AfterFunc(60*time.Second, func() { q.setDown(false, "b0") })
		time.AfterFunc(80*time.Second, func() { q.setDown(true, "a0", "b0") })
		time.AfterFunc(100*time.Second, func() { q.setDown(false, "a0", "b0") })
		q.send(q.channels(1, o, "failover:///tier:///a1,tier:///b1"), 20, 140*time.Second)
		if lines := r.take(true); slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "calls succeed") }) {
			t.Errorf("logged %q, although no call succeeds", lines)
		}
	})
}
