package channel_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/understudy-lb/understudy"
)

type logRecords struct {
	mu    sync.Mutex
	lines []string
}

func (r *logRecords) Enabled(context.Context, slog.Level) bool { return true }
func (r *logRecords) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *logRecords) WithGroup(string) slog.Handler            { return r }

func (r *logRecords) Handle(_ context.Context, record slog.Record) error {
	line := record.Message
	record.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	return nil
}

func (r *logRecords) take(full bool) (messages []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		message, _, _ := strings.Cut(line, " target=")
		if full {
			message = line
		}
		messages = append(messages, message)
	}
	return messages
}

func (m *memoryNetwork) calls(cc *grpc.ClientConn, every, length time.Duration) (failed int, tiers map[byte]int) {
	tiers = map[byte]int{}
	for range length / every {
		if address, err := m.call(cc); err != nil {
			failed++
		} else {
			tiers[address[0]]++
		}
		time.Sleep(every)
	}
	return failed, tiers
}

func (m *memoryNetwork) callsDuringOutages(cc *grpc.ClientConn, every time.Duration) (failed int) {
	for _, down := range [][]string{nil, {"a0"}, nil, {"a0", "a1"}, nil} {
		m.setDown(true, down...)
		n, _ := m.calls(cc, every, 5*time.Minute)
		failed += n
		m.setDown(false, down...)
	}
	return failed
}

// Where Recommended does not help, it does no harm: no more calls fail than with the zero Options,
// and the log is the same.
func TestRecommendedDoesNoHarm(t *testing.T) {
	for name, test := range map[string]struct {
		target string
		every  time.Duration
	}{
		"a single priority": {"failover:///tier:///a2", 200 * time.Millisecond},
		"a call in 10 s":    {"failover:///tier:///a2,tier:///b2", 10 * time.Second},
		"a single backend":  {"failover:///tier:///a1", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			failed, logged := map[bool]int{}, map[bool][]string{}
			for _, recommended := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					r := &logRecords{}
					o := understudy.Options{}
					if recommended {
						o = understudy.Recommended()
					}
					o.Logger = slog.New(r)
					m := newMemory(t, understudy.Recommended().ServerKeepalive())
					failed[recommended] = m.callsDuringOutages(m.newChannel(test.target, o), test.every)
					// What becomes of a share is more news, and no noise.
					logged[recommended] = slices.DeleteFunc(r.take(false), func(message string) bool { return message == "share" })
				})
			}
			// Backoffs have random jitter, so the two runs may differ by one backoff: at most 10 s
			// plus a fifth.
			const backoff = 12 * time.Second
			if most := failed[false] + int((backoff+test.every-1)/test.every); failed[true] > most {
				t.Errorf("%d calls failed, want at most %d", failed[true], most)
			}
			if !slices.Equal(logged[true], logged[false]) {
				t.Errorf("logged %q, want %q", logged[true], logged[false])
			}
		})
	}
}
