package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// Network simulates a network between clients and hosts. A host has one address, e.g.
// "10.0.0.1:443".
type Network struct {
	event func(format string, args ...any)

	mu    sync.Mutex
	hosts map[string]*host
}

type Link struct {
	Refuse bool
	// LoseOut drops packets to the host, and LoseIn drops packets from it. Existing connections
	// hang, and dials don't complete.
	LoseOut, LoseIn bool
	// Pause suspends the process of the host. Dials succeed, but the host neither reads nor sends.
	Pause bool
	Delay time.Duration
	// Rate limits the bytes per second in each direction of a connection. 0 means no limit.
	Rate int
}

type host struct {
	link     Link
	listener *listener
	conns    map[*conn]bool
}

func NewNetwork(event func(format string, args ...any)) *Network {
	return &Network{event: event, hosts: make(map[string]*host)}
}

func (n *Network) host(address string) *host {
	h := n.hosts[address]
	if h == nil {
		h = &host{conns: make(map[*conn]bool)}
		n.hosts[address] = h
	}
	return h
}

// SetLink changes the link to a host, which affects existing connections too.
func (n *Network) SetLink(address string, link Link) {
	n.mu.Lock()
	n.host(address).link = link
	n.mu.Unlock()
	for _, c := range n.connections(address) {
		c.setLink(link)
	}
}

func (n *Network) Reset(address string) {
	for _, c := range n.connections(address) {
		c.reset(true)
	}
}

// HalfOpen breaks the host's end of its connections without telling the clients.
func (n *Network) HalfOpen(address string) {
	for _, c := range n.connections(address) {
		c.reset(false)
	}
}

func (n *Network) connections(address string) []*conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.host(address).conns))
}

// OpenTo returns how many connections to a host are open.
func (n *Network) OpenTo(address string) int { return len(n.connections(address)) }

func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	open := 0
	for _, h := range n.hosts {
		open += len(h.conns)
	}
	return open
}

var errRefused = errors.New("connection refused")

func (n *Network) Connected(address string) (oldest time.Time) {
	for _, c := range n.connections(address) {
		if oldest.IsZero() || c.openedAt.Before(oldest) {
			oldest = c.openedAt
		}
	}
	return oldest
}

func (n *Network) Dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	h := n.host(address)
	n.mu.Unlock()
	if err := n.reach(ctx, h); err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	n.mu.Lock()
	link, l := h.link, h.listener
	if link.Refuse || l == nil {
		n.mu.Unlock()
		return nil, fmt.Errorf("dial %s: %w", address, errRefused)
	}
	c := newConn(address, link)
	h.conns[c] = true
	n.mu.Unlock()
	n.event("connection to %s", address)
	c.setOnClosed(func() {
		n.event("connection to %s closed", address)
		n.mu.Lock()
		delete(h.conns, c)
		n.mu.Unlock()
	})
	if !l.offer(c) {
		c.reset(true)
		return nil, fmt.Errorf("dial %s: %w", address, errRefused)
	}
	return c.client(), nil
}

// reach waits until a connection to the host can be established. While the link loses packets, it
// sends one every second. After that, it waits for the link's delay.
func (n *Network) reach(ctx context.Context, h *host) error {
	for delayed := false; ; {
		n.mu.Lock()
		link := h.link
		n.mu.Unlock()
		lost := link.LoseOut || link.LoseIn
		if !lost && (delayed || link.Delay == 0) {
			return nil
		}
		wait := 2 * link.Delay
		if lost {
			wait = time.Second
		}
		delayed = !lost
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

func (n *Network) Listen(address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.host(address)
	if h.listener != nil {
		return nil, fmt.Errorf("listen %s: address in use", address)
	}
	l := &listener{address: addr(address), queue: make(chan *conn, 1024), done: make(chan struct{})}
	l.onClose = func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if h.listener == l {
			h.listener = nil
		}
	}
	h.listener = l
	return l, nil
}

// closeListener leaves accepted connections open.
func (n *Network) closeListener(address string) {
	n.mu.Lock()
	l := n.host(address).listener
	n.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
}

type listener struct {
	address addr
	queue   chan *conn
	onClose func()
	once    sync.Once
	done    chan struct{}
}

// offer returns false if the listener is closed.
func (l *listener) offer(c *conn) bool {
	if l.closed() {
		return false
	}
	select {
	case l.queue <- c:
		if l.closed() {
			l.resetQueue()
		}
		return true
	case <-l.done:
		return false
	}
}

func (l *listener) closed() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func (l *listener) Accept() (net.Conn, error) {
	if l.closed() {
		return nil, net.ErrClosed
	}
	select {
	case c := <-l.queue:
		return c.server(), nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close closes the listener. Like a kernel, it resets connections that nobody has accepted.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.onClose()
		close(l.done)
		l.resetQueue()
	})
	return nil
}

func (l *listener) resetQueue() {
	for {
		select {
		case c := <-l.queue:
			c.reset(true)
		default:
			return
		}
	}
}

func (l *listener) Addr() net.Addr { return l.address }

type addr string

func (addr) Network() string  { return "sim" }
func (a addr) String() string { return string(a) }
