package testproxy

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Relay passes bytes on between those who connect to it and a server, unless it is cut: then
// nothing passes, in either direction, as where all packets are lost. What was sent
// meanwhile arrives once it is mended, as TCP has it. Its methods are safe for concurrent
// use.
type Relay struct {
	// Address is where to connect to.
	Address string

	server string
	ended  chan struct{} // closed at the end of the test

	mu     sync.Mutex
	mended chan struct{} // closed while bytes pass
	conns  []net.Conn
}

// StartRelay starts a relay before the server at an address. It ends with the test.
func StartRelay(t *testing.T, server string) *Relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Address: listener.Addr().String(), server: server, ended: make(chan struct{}), mended: make(chan struct{})}
	close(r.mended)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.serve(client) })
		}
	})
	t.Cleanup(func() {
		close(r.ended)
		listener.Close() //nolint:errcheck // the test ends
		r.mu.Lock()
		for _, conn := range r.conns {
			conn.Close() //nolint:errcheck // the test ends
		}
		r.mu.Unlock()
		running.Wait()
	})
	return r
}

// Cut lets nothing pass any more.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.mended:
		r.mended = make(chan struct{})
	default:
	}
}

// Mend lets everything pass again.
func (r *Relay) Mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.mended:
	default:
		close(r.mended)
	}
}

// keep has a connection closed at the end of the test, unless that is over.
func (r *Relay) keep(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conn)
	select {
	case <-r.ended:
		conn.Close() //nolint:errcheck // the test ends
	default:
	}
}

func (r *Relay) serve(client net.Conn) {
	r.keep(client)
	defer client.Close() //nolint:errcheck // nothing to be lost
	server, err := net.Dial("tcp", r.server)
	if err != nil {
		return
	}
	r.keep(server)
	defer server.Close() //nolint:errcheck // nothing to be lost
	var back sync.WaitGroup
	back.Go(func() { r.pass(client, server) })
	r.pass(server, client)
	back.Wait()
}

// pass passes bytes on until one of the two closes.
func (r *Relay) pass(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		r.mu.Lock()
		mended := r.mended
		r.mu.Unlock()
		select {
		case <-mended:
		case <-r.ended:
			err = io.EOF
		}
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			to.Close() //nolint:errcheck // an end is an end
			return
		}
	}
}
