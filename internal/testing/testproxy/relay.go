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

	server   string
	listener net.Listener
	ended    chan struct{} // closed by Close
	running  sync.WaitGroup

	mu     sync.Mutex
	mended chan struct{} // closed while bytes pass
	conns  []net.Conn
}

// StartRelay starts a relay before the server at an address. It ends with the test.
func StartRelay(t *testing.T, server string) *Relay {
	t.Helper()
	r, err := NewRelay(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// NewRelay is StartRelay for what is no test.
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

// Close ends the relay, and all connections through it. It is called once.
func (r *Relay) Close() {
	close(r.ended)
	r.listener.Close() //nolint:errcheck // it is over
	r.mu.Lock()
	for _, conn := range r.conns {
		conn.Close() //nolint:errcheck // it is over
	}
	r.mu.Unlock()
	r.running.Wait()
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

// keep has Close close a connection too, or closes it afterwards.
func (r *Relay) keep(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conn)
	select {
	case <-r.ended:
		conn.Close() //nolint:errcheck // it is over
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
