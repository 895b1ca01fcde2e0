package sim

import (
	"context"
	"errors"
	"net"
	"time"
)

func (w *World) dialBackend(ctx context.Context, address string) (net.Conn, error) {
	w.mu.Lock()
	if failed, ok := w.dialFailedAt[address]; ok && failed.Before(time.Now()) {
		// Jitter can make gRPC's backoff up to 20 % shorter.
		if pause := time.Since(failed); failed.After(w.openedAt) && pause >= w.settings.maxBackoff*4/5 {
			w.mark(markBackoff)
			if w.settings.maxBackoff == 120*time.Second {
				w.mark(markTwoMinutes)
			}
		}
	}
	delete(w.dialFailedAt, address)
	w.mu.Unlock()
	conn, err := w.network.Dial(ctx, address)
	if err != nil {
		w.mu.Lock()
		w.dialFailedAt[address] = time.Now()
		w.mu.Unlock()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		w.mark(markConnectTimeout)
	}
	return conn, err
}
