package sim

import (
	"context"
	"errors"
	"net"
	"time"
)

// dialBackend dials a backend for the channel. It records whether backoff and timeout have reached
// their limits.
func (w *World) dialBackend(ctx context.Context, address string) (net.Conn, error) {
	w.mu.Lock()
	if failed, ok := w.dialFailed[address]; ok && failed.Before(time.Now()) {
		// gRPC's jitter makes a backoff up to 20 % shorter.
		if pause := time.Since(failed); failed.After(w.openedAt) && pause >= w.settings.maxBackoff*4/5 {
			w.mark(markBackoff)
			if w.settings.maxBackoff == 120*time.Second {
				w.mark(markTwoMinutes)
			}
		}
	}
	delete(w.dialFailed, address)
	w.mu.Unlock()
	conn, err := w.network.Dial(ctx, address)
	if err != nil {
		w.mu.Lock()
		w.dialFailed[address] = time.Now()
		w.mu.Unlock()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		w.mark(markAttempt)
	}
	return conn, err
}
