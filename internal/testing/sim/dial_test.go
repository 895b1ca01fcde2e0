package sim

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A dial waits while the link loses packets, and succeeds when the link works again.
func TestLinkFailsDuringDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const host = "10.0.0.1:443"
		n := NewNetwork(func(string, ...any) {})
		l, err := n.Listen(host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		dial := func(timeout time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			c, err := n.Dial(ctx, host)
			if err == nil {
				_ = c.Close()
			}
			return err
		}
		n.SetLink(host, Link{Delay: time.Second})
		time.AfterFunc(time.Second, func() { n.SetLink(host, Link{LoseOut: true}) })
		if err := dial(20 * time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want context.DeadlineExceeded", err)
		}
		time.AfterFunc(5*time.Second, func() { n.SetLink(host, Link{}) })
		if err := dial(20 * time.Second); err != nil {
			t.Errorf("error = %v, want a connection after the link is restored", err)
		}
	})
}
