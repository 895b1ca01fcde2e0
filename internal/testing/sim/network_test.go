package sim

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A dial to a paused host succeeds, but the host reads nothing until it resumes.
func TestPausedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(func(string, ...any) {})
		l, err := n.Listen(firstTier)
		if err != nil {
			t.Fatal(err)
		}
		n.SetLink(firstTier, Link{Pause: true})
		client, err := n.Dial(t.Context(), firstTier)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		time.AfterFunc(time.Minute, func() { n.SetLink(firstTier, Link{}) })
		got := make([]byte, 4)
		if _, err := server.Read(got); err != nil || string(got) != "ping" || time.Since(begin) != time.Minute {
			t.Errorf("the host read %q after %v, %v, want ping after a minute", got, time.Since(begin), err)
		}
		_, _ = client.Close(), l.Close()
	})
}

func TestBackendStopsBeforeItServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBackend(NewNetwork(func(string, ...any) {}), firstTier, func(string) {})
		for range 100 {
			b.Up()
			b.Down()
		}
	})
}

// When a listener closes, the connections that it has not accepted are reset, and the accepted
// connections stay open.
func TestListenerCloseResetsQueuedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewNetwork(func(string, ...any) {})
		const address = "10.0.0.1:443"
		l, err := network.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := network.Dial(context.Background(), address)
		if err != nil {
			t.Fatal(err)
		}
		host, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		waiting, err := network.Dial(context.Background(), address)
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan error, 1)
		go func() {
			_, err := waiting.Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-read:
			if !errors.Is(err, errReset) {
				t.Errorf("the connection in the queue ends with %v, want %v", err, errReset)
			}
		default:
			t.Error("the connection in the queue is still open")
		}
		if _, open := network.Dials(address); open != 1 {
			t.Errorf("%d connections are open, want only the accepted one", open)
		}
		if _, err := host.Write([]byte("x")); err != nil {
			t.Errorf("the accepted connection is broken: %v", err)
		}
		if _, err := l.Accept(); err == nil {
			t.Error("a closed listener accepts a connection")
		}
		if _, err := network.Dial(context.Background(), address); !errors.Is(err, errRefused) {
			t.Errorf("dialing a closed listener fails with %v, want %v", err, errRefused)
		}
		_, _, _ = accepted.Close(), waiting.Close(), host.Close()
	})
}
