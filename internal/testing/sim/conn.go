package sim

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const window = 64 << 10

var errReset = errors.New("connection reset by peer")

type conn struct {
	address          string
	toHost, toClient *pipe
	openedAt         time.Time

	mu       sync.Mutex
	onClosed func()
}

func newConn(address string, link Link) *conn {
	c := &conn{address: address, toHost: newPipe(), toClient: newPipe(), openedAt: time.Now()}
	c.setLink(link)
	return c
}

func (c *conn) setLink(link Link) {
	c.toHost.setLink(link.LoseOut || link.Pause, link.Delay, link.Rate)
	c.toClient.setLink(link.LoseIn || link.Pause, link.Delay, link.Rate)
}

func (c *conn) reset(tellClient bool) {
	c.toHost.breakReader(errReset)
	c.toClient.breakWriter(errReset)
	if tellClient {
		c.toHost.breakWriter(errReset)
		c.toClient.breakReader(errReset)
		c.notifyClosed()
	}
}

func (c *conn) setOnClosed(f func()) {
	c.mu.Lock()
	c.onClosed = f
	c.mu.Unlock()
}

func (c *conn) notifyClosed() {
	c.mu.Lock()
	f := c.onClosed
	c.onClosed = nil
	c.mu.Unlock()
	if f != nil {
		f()
	}
}

func (c *conn) client() net.Conn {
	return &connEnd{conn: c, read: c.toClient, write: c.toHost, local: "client", remote: addr(c.address)}
}

func (c *conn) server() net.Conn {
	return &connEnd{conn: c, read: c.toHost, write: c.toClient, local: addr(c.address), remote: "client"}
}

type connEnd struct {
	conn          *conn
	read, write   *pipe
	local, remote addr
}

func (e *connEnd) Read(b []byte) (int, error)  { return e.read.read(b) }
func (e *connEnd) Write(b []byte) (int, error) { return e.write.writeAll(b) }

func (e *connEnd) Close() error {
	e.read.breakReader(net.ErrClosed)
	e.write.closeWriter()
	e.conn.notifyClosed()
	return nil
}

func (e *connEnd) LocalAddr() net.Addr  { return e.local }
func (e *connEnd) RemoteAddr() net.Addr { return e.remote }

func (e *connEnd) SetDeadline(t time.Time) error {
	e.read.setReadDeadline(t)
	e.write.setWriteDeadline(t)
	return nil
}

func (e *connEnd) SetReadDeadline(t time.Time) error {
	e.read.setReadDeadline(t)
	return nil
}

func (e *connEnd) SetWriteDeadline(t time.Time) error {
	e.write.setWriteDeadline(t)
	return nil
}

type pipe struct {
	mu      sync.Mutex
	changed *sync.Cond

	queue       []parcel
	size        int
	blocked     bool
	delay       time.Duration
	rate        int
	lastArrival time.Time
	eof         bool
	readErr     error
	writeErr    error

	readDeadline, writeDeadline deadline
}

// parcel is the data of one write. If it's empty, the stream ends here.
type parcel struct {
	bytes   []byte
	arrival time.Time
}

func newPipe() *pipe {
	p := &pipe{}
	p.changed = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) setLink(blocked bool, delay time.Duration, rate int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked, p.delay, p.rate = blocked, delay, rate
	p.changed.Broadcast()
}

func (p *pipe) breakReader(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readErr == nil {
		p.readErr = err
	}
	p.changed.Broadcast()
}

func (p *pipe) breakWriter(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writeErr == nil {
		p.writeErr = err
	}
	p.changed.Broadcast()
}

func (p *pipe) closeWriter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writeErr == nil {
		p.writeErr = net.ErrClosed
		p.enqueue(nil)
	}
	p.changed.Broadcast()
}

// enqueue sends bytes, which arrive after the link's delay. As in TCP, they never overtake earlier
// ones.
func (p *pipe) enqueue(b []byte) {
	now := time.Now()
	arrival := now.Add(p.delay)
	if arrival.Before(p.lastArrival) {
		arrival = p.lastArrival
	}
	if p.rate > 0 {
		arrival = arrival.Add(time.Duration(len(b)) * time.Second / time.Duration(p.rate))
	}
	p.lastArrival = arrival
	p.queue = append(p.queue, parcel{b, arrival})
	p.size += len(b)
	if wait := arrival.Sub(now); wait > 0 {
		time.AfterFunc(wait, p.wake)
	}
	p.changed.Broadcast()
}

func (p *pipe) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}

func (p *pipe) writeAll(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.writeErr != nil:
			return 0, p.writeErr
		case p.writeDeadline.passed():
			return 0, os.ErrDeadlineExceeded
		case p.size < window:
			p.enqueue(append([]byte(nil), b...))
			return len(b), nil
		}
		p.changed.Wait()
	}
}

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.readErr != nil:
			return 0, p.readErr
		case p.readDeadline.passed():
			return 0, os.ErrDeadlineExceeded
		case p.eof:
			return 0, io.EOF
		case !p.blocked && len(p.queue) > 0 && !time.Now().Before(p.queue[0].arrival):
			if n := p.dequeue(b); n > 0 {
				return n, nil
			}
			continue
		}
		p.changed.Wait()
	}
}

func (p *pipe) dequeue(b []byte) int {
	first := &p.queue[0]
	if first.bytes == nil {
		p.eof = true
		return 0
	}
	n := copy(b, first.bytes)
	first.bytes = first.bytes[n:]
	p.size -= n
	if len(first.bytes) == 0 {
		p.queue = p.queue[1:]
	}
	p.changed.Broadcast()
	return n
}

func (p *pipe) setReadDeadline(t time.Time)  { p.setDeadline(&p.readDeadline, t) }
func (p *pipe) setWriteDeadline(t time.Time) { p.setDeadline(&p.writeDeadline, t) }

func (p *pipe) setDeadline(d *deadline, t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.time = t
	if wait := time.Until(t); !t.IsZero() && wait > 0 {
		time.AfterFunc(wait, p.wake)
	}
	p.changed.Broadcast()
}

type deadline struct{ time time.Time }

func (d deadline) passed() bool { return !d.time.IsZero() && !time.Now().Before(d.time) }
