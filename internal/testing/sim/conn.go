package sim

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// window is how many bytes one direction holds before a writer blocks.
const window = 64 << 10

var errReset = errors.New("connection reset by peer")

type conn struct {
	address string
	out, in *pipe
	begin   time.Time

	mu     sync.Mutex
	closed func()
}

func newConn(address string, link Link) *conn {
	c := &conn{address: address, out: newPipe(), in: newPipe(), begin: time.Now()}
	c.setLink(link)
	return c
}

func (c *conn) setLink(link Link) {
	c.out.set(link.LoseOut || link.Pause, link.Delay, link.Rate)
	c.in.set(link.LoseIn || link.Pause, link.Delay, link.Rate)
}

// reset breaks the host's end of the connection. If tellClient is set, it also breaks the client's
// end.
func (c *conn) reset(tellClient bool) {
	c.out.breakReader(errReset)
	c.in.breakWriter(errReset)
	if tellClient {
		c.out.breakWriter(errReset)
		c.in.breakReader(errReset)
		c.gone()
	}
}

func (c *conn) onClose(f func()) {
	c.mu.Lock()
	c.closed = f
	c.mu.Unlock()
}

func (c *conn) gone() {
	c.mu.Lock()
	f := c.closed
	c.closed = nil
	c.mu.Unlock()
	if f != nil {
		f()
	}
}

func (c *conn) client() net.Conn {
	return &end{conn: c, read: c.in, write: c.out, local: "client", remote: addr(c.address)}
}

func (c *conn) server() net.Conn {
	return &end{conn: c, read: c.out, write: c.in, local: addr(c.address), remote: "client"}
}

type end struct {
	conn          *conn
	read, write   *pipe
	local, remote addr
}

func (e *end) Read(b []byte) (int, error)  { return e.read.read(b) }
func (e *end) Write(b []byte) (int, error) { return e.write.writeAll(b) }

func (e *end) Close() error {
	e.read.breakReader(net.ErrClosed)
	e.write.finish()
	e.conn.gone()
	return nil
}

func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.remote }

func (e *end) SetDeadline(t time.Time) error {
	e.read.readDeadline(t)
	e.write.writeDeadline(t)
	return nil
}

func (e *end) SetReadDeadline(t time.Time) error {
	e.read.readDeadline(t)
	return nil
}

func (e *end) SetWriteDeadline(t time.Time) error {
	e.write.writeDeadline(t)
	return nil
}

type pipe struct {
	mu     sync.Mutex
	change *sync.Cond

	queue   []parcel
	held    int
	lose    bool
	delay   time.Duration
	rate    int
	last    time.Time // when the last parcel arrives
	eof     bool      // the reader knows that the writer has closed its end
	readErr error
	sendErr error

	readBy, writeBy deadline
}

// parcel is the data of one write. A parcel without bytes ends the stream.
type parcel struct {
	bytes []byte
	at    time.Time
}

func newPipe() *pipe {
	p := &pipe{}
	p.change = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) set(lose bool, delay time.Duration, rate int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose, p.delay, p.rate = lose, delay, rate
	p.change.Broadcast()
}

func (p *pipe) breakReader(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readErr == nil {
		p.readErr = err
	}
	p.change.Broadcast()
}

func (p *pipe) breakWriter(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sendErr == nil {
		p.sendErr = err
	}
	p.change.Broadcast()
}

func (p *pipe) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sendErr == nil {
		p.sendErr = net.ErrClosed
		p.post(nil)
	}
	p.change.Broadcast()
}

// post sends bytes. If they are lost, all later bytes wait until the lost ones are sent again, as
// in TCP.
func (p *pipe) post(b []byte) {
	now := time.Now()
	at := now.Add(p.delay)
	if at.Before(p.last) {
		at = p.last
	}
	if p.rate > 0 {
		at = at.Add(time.Duration(len(b)) * time.Second / time.Duration(p.rate))
	}
	p.last = at
	p.queue = append(p.queue, parcel{b, at})
	p.held += len(b)
	if wait := at.Sub(now); wait > 0 {
		time.AfterFunc(wait, p.wake)
	}
	p.change.Broadcast()
}

func (p *pipe) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change.Broadcast()
}

func (p *pipe) writeAll(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.sendErr != nil:
			return 0, p.sendErr
		case p.writeBy.passed():
			return 0, os.ErrDeadlineExceeded
		case p.held < window:
			p.post(append([]byte(nil), b...))
			return len(b), nil
		}
		p.change.Wait()
	}
}

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.readErr != nil:
			return 0, p.readErr
		case p.readBy.passed():
			return 0, os.ErrDeadlineExceeded
		case p.eof:
			return 0, io.EOF
		case !p.lose && len(p.queue) > 0 && !time.Now().Before(p.queue[0].at):
			if n := p.take(b); n > 0 {
				return n, nil
			}
			continue
		}
		p.change.Wait()
	}
}

// take moves bytes of the first parcel to b and returns their number.
func (p *pipe) take(b []byte) int {
	first := &p.queue[0]
	if first.bytes == nil {
		p.eof = true
		return 0
	}
	n := copy(b, first.bytes)
	first.bytes = first.bytes[n:]
	p.held -= n
	if len(first.bytes) == 0 {
		p.queue = p.queue[1:]
	}
	p.change.Broadcast()
	return n
}

func (p *pipe) readDeadline(t time.Time)  { p.setDeadline(&p.readBy, t) }
func (p *pipe) writeDeadline(t time.Time) { p.setDeadline(&p.writeBy, t) }

func (p *pipe) setDeadline(d *deadline, t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.at = t
	if wait := time.Until(t); !t.IsZero() && wait > 0 {
		time.AfterFunc(wait, p.wake)
	}
	p.change.Broadcast()
}

type deadline struct{ at time.Time }

func (d deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }
