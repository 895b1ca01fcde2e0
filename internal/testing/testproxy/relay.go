package testproxy

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Relay forwards bytes between clients and a server. While it is cut, it holds them back, as if all
// packets were lost. They arrive after Mend, as with TCP. Its methods may be called concurrently.
type Relay struct {
	Address string

	server   string
	listener net.Listener
	ended    chan struct{}
	running  sync.WaitGroup

	mu     sync.Mutex
	mended chan struct{} // closed while bytes are forwarded, and replaced by Cut
	conns  []net.Conn
}

func StartRelay(t *testing.T, server string) *Relay {
	t.Helper()
	r, err := NewRelay(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// NewRelay starts a relay outside of a test. The caller must call Close.
func NewRelay(server string) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{Address: listener.Addr().String(), server: server, listener: listener, ended: make(chan struct{}), mended: make(chan struct{})}
	close(r.mended)
	r.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			r.running.Go(func() { r.serve(client) })
		}
	})
	return r, nil
}

// Close ends the relay and its connections. It must be called only once.
func (r *Relay) Close() {
	close(r.ended)
	r.listener.Close() //nolint:errcheck // the relay is ending
	r.mu.Lock()
	for _, conn := range r.conns {
		conn.Close() //nolint:errcheck // the relay is ending
	}
	r.mu.Unlock()
	r.running.Wait()
}

func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.mended:
		r.mended = make(chan struct{})
	default:
	}
}

func (r *Relay) Mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.mended:
	default:
		close(r.mended)
	}
}

// keep registers a connection for Close. If the relay is already closed, it closes the connection.
func (r *Relay) keep(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conn)
	select {
	case <-r.ended:
		conn.Close() //nolint:errcheck // the relay is ending
	default:
	}
}

func (r *Relay) serve(client net.Conn) {
	r.keep(client)
	defer client.Close() //nolint:errcheck // nothing is pending
	server, err := net.Dial("tcp", r.server)
	if err != nil {
		return
	}
	r.keep(server)
	defer server.Close() //nolint:errcheck // nothing is pending
	var back sync.WaitGroup
	back.Go(func() { r.pass(client, server) })
	r.pass(server, client)
	back.Wait()
}

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
			to.Close() //nolint:errcheck // errors end the copy
			return
		}
	}
}
