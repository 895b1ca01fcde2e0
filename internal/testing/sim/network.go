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

// Network carries bytes between clients and hosts of the world. A host is an address
// such as "10.0.0.1:443". All methods may be called from any goroutine of the bubble.
type Network struct {
	event func(format string, args ...any)

	mu    sync.Mutex
	hosts map[string]*host
}

// Link is what the way to a host does to the bytes that take it.
type Link struct {
	// Refuse makes new connections fail at once.
	Refuse bool
	// LoseOut and LoseIn lose what clients send and what the host sends: connections
	// that exist hang, and new ones never come about.
	LoseOut, LoseIn bool
	// Delay is how long each write takes to arrive.
	Delay time.Duration
	// Rate is how many bytes a second a connection carries each way; 0 is no limit.
	Rate int
}

// host is one address: who listens there, the link to it, and its connections.
type host struct {
	link     Link
	listener *listener // nil if nobody listens
	conns    map[*conn]bool
	dials    int
}

// NewNetwork returns a network without hosts. event is told what becomes of connections.
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

// SetLink changes the link to a host, for connections that exist as well.
func (n *Network) SetLink(address string, link Link) {
	n.mu.Lock()
	n.host(address).link = link
	n.mu.Unlock()
	for _, c := range n.connections(address) {
		c.setLink(link)
	}
}

// Reset breaks all connections to a host.
func (n *Network) Reset(address string) {
	for _, c := range n.connections(address) {
		c.reset(true)
	}
}

// HalfOpen breaks the host's side of all connections to it; clients are not told.
func (n *Network) HalfOpen(address string) {
	for _, c := range n.connections(address) {
		c.reset(false)
	}
}

// connections returns those to a host.
func (n *Network) connections(address string) []*conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.host(address).conns))
}

// Dials returns how many connections were asked for at a host so far, and how many
// there are now.
func (n *Network) Dials(address string) (asked, open int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.host(address)
	return h.dials, len(h.conns)
}

// Open returns how many connections there are in all.
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

// Connected returns since when there has been a connection to a host; zero if there is none.
func (n *Network) Connected(address string) (oldest time.Time) {
	for _, c := range n.connections(address) {
		if oldest.IsZero() || c.begin.Before(oldest) {
			oldest = c.begin
		}
	}
	return oldest
}

// Dial connects to a host. It is for grpc.WithContextDialer.
func (n *Network) Dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	h := n.host(address)
	h.dials++
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
	c.onClose(func() {
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

// reach waits until what opens a connection gets through both ways, however the link
// changes meanwhile. What is lost is sent again every second, as TCP does more or less.
func (n *Network) reach(ctx context.Context, h *host) error {
	for arrives := false; ; {
		n.mu.Lock()
		link := h.link
		n.mu.Unlock()
		lost := link.LoseOut || link.LoseIn
		if !lost && (arrives || link.Delay == 0) {
			return nil
		}
		wait := 2 * link.Delay
		if lost {
			wait = time.Second
		}
		arrives = !lost
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// Listen makes a host listen. It fails if one listens there already.
func (n *Network) Listen(address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.host(address)
	if h.listener != nil {
		return nil, fmt.Errorf("listen %s: address in use", address)
	}
	l := &listener{address: addr(address), queue: make(chan *conn, 1024), done: make(chan struct{})}
	l.left = func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if h.listener == l {
			h.listener = nil
		}
	}
	h.listener = l
	return l, nil
}

// closeListener ends the listening at a host; connections that were accepted stay.
func (n *Network) closeListener(address string) {
	n.mu.Lock()
	l := n.host(address).listener
	n.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
}

// listener is the host's end of Listen.
type listener struct {
	address addr
	queue   chan *conn // what nobody has accepted yet
	left    func()
	once    sync.Once
	done    chan struct{}
}

// offer hands a connection to whoever accepts. One that comes while the listener closes is
// reset, as those are that wait.
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

// Close resets the connections that nobody has accepted, as a kernel does.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.left()
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

// addr is an address of the world.
type addr string

func (addr) Network() string  { return "sim" }
func (a addr) String() string { return string(a) }
