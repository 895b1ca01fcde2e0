package testproxy

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Relay forwards bytes between clients and a server. After Cut it holds everything back, as if the
// network lost all packets. After Mend it delivers them, as TCP would. Its methods may be called
// concurrently.
type Relay struct {
	Address string

	server   string
	listener net.Listener
	done     chan struct{}
	running  sync.WaitGroup

	mu         sync.Mutex
	forwarding chan struct{} // closed while the relay forwards bytes; Cut replaces it
	conns      []net.Conn
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

// NewRelay is like StartRelay for callers without a *testing.T. They must call Close.
func NewRelay(server string) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{Address: listener.Addr().String(), server: server, listener: listener, done: make(chan struct{}), forwarding: make(chan struct{})}
	close(r.forwarding)
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

// Close stops the relay and closes its connections. Only call it once.
func (r *Relay) Close() {
	close(r.done)
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
	case <-r.forwarding:
		r.forwarding = make(chan struct{})
	default:
	}
}

func (r *Relay) Mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.forwarding:
	default:
		close(r.forwarding)
	}
}

func (r *Relay) register(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conn)
	select {
	case <-r.done:
		conn.Close() //nolint:errcheck // the relay is ending
	default:
	}
}

func (r *Relay) serve(client net.Conn) {
	r.register(client)
	defer client.Close() //nolint:errcheck // nothing is pending
	server, err := net.Dial("tcp", r.server)
	if err != nil {
		return
	}
	r.register(server)
	defer server.Close() //nolint:errcheck // nothing is pending
	var responses sync.WaitGroup
	responses.Go(func() { r.forward(client, server) })
	r.forward(server, client)
	responses.Wait()
}

func (r *Relay) forward(dst, src net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := src.Read(buffer)
		r.mu.Lock()
		forwarding := r.forwarding
		r.mu.Unlock()
		select {
		case <-forwarding:
		case <-r.done:
			err = io.EOF
		}
		if err == nil {
			_, err = dst.Write(buffer[:n])
		}
		if err != nil {
			dst.Close() //nolint:errcheck // errors end the copy
			return
		}
	}
}
