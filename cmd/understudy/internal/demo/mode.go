package demo

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

type mode string

// The modes of a backend. A backend reads its mode as a line from stdin, and writes the line back
// when the mode is set.
const (
	serving mode = "serving" // answers calls
	failing mode = "failing" // answers calls with errors, but health checks with SERVING
	hung    mode = "hung"    // neither reads nor writes, like a stopped process
)

type behaviour struct {
	failing atomic.Bool
	gate    gate
}

func (b *behaviour) set(m mode) error {
	switch m {
	case serving, failing, hung:
	default:
		return fmt.Errorf("mode %.20q given, want %s, %s or %s", m, serving, failing, hung)
	}
	b.failing.Store(m == failing)
	b.gate.set(m != hung)
	return nil
}

// readModes reads modes from stdin and sets them. At the end of stdin, it ends the mode hung,
// because a server that stops waits for pending calls.
func (b *behaviour) readModes(stdin io.Reader, stdout io.Writer) {
	lines := bufio.NewScanner(stdin)
	for lines.Scan() {
		answer := lines.Text()
		if err := b.set(mode(answer)); err != nil {
			answer = err.Error()
		}
		fmt.Fprintln(stdout, answer)
	}
	b.gate.set(true)
}

type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while the gate is open; closed when it opens
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open && g.opened != nil:
		close(g.opened)
		g.opened = nil
	case !open && g.opened == nil:
		g.opened = make(chan struct{})
	}
}

func (g *gate) wait(done <-chan struct{}) {
	for {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if opened == nil {
			return
		}
		select {
		case <-opened:
		case <-done:
			return
		}
	}
}

// gatedListener returns connections that transfer nothing while the gate is closed. The operating
// system still accepts connections, as it does for a stopped process.
type gatedListener struct {
	net.Listener
	gate *gate
}

func (l gatedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatedConn{Conn: conn, gate: l.gate, closed: make(chan struct{})}, nil
}

type gatedConn struct {
	net.Conn
	gate   *gate
	once   sync.Once
	closed chan struct{}
}

func (c *gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.gate.wait(c.closed)
	return n, err
}

func (c *gatedConn) Write(p []byte) (int, error) {
	c.gate.wait(c.closed)
	return c.Conn.Write(p)
}

func (c *gatedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// setMode sets the backend's mode, and returns when the mode is in effect.
func (b *backend) setMode(m mode) error {
	if _, err := fmt.Fprintln(b.stdin, m); err != nil {
		return fmt.Errorf("tell backend %s to be %s: %w", b.address, m, err)
	}
	answer, err := b.stdout.ReadString('\n')
	if err != nil {
		return fmt.Errorf("backend %s did not become %s: %w", b.address, m, err)
	}
	if answer = strings.TrimSpace(answer); answer != string(m) {
		return fmt.Errorf("backend %s did not become %s: %s", b.address, m, answer)
	}
	b.mode = m
	return nil
}
