package adstest

import (
	"net"
	"sync"
	"sync/atomic"
)

// Cable wraps conn and returns a function that simulates a broken network. After cut is called,
// nothing gets through in either direction, but neither side sees the connection end. With
// blockWrites, writes block as if a send buffer were full.
func Cable(conn net.Conn) (cabled net.Conn, cut func(blockWrites bool)) {
	c := &cable{Conn: conn, closed: make(chan struct{})}
	return c, func(blockWrites bool) {
		c.blockWrites.Store(blockWrites)
		c.cut.Store(true)
	}
}

type cable struct {
	net.Conn
	cut         atomic.Bool
	blockWrites atomic.Bool
	once        sync.Once
	closed      chan struct{}
}

func (c *cable) Write(b []byte) (int, error) {
	if c.cut.Load() {
		if c.blockWrites.Load() {
			<-c.closed
			return 0, net.ErrClosed
		}
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *cable) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.cut.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *cable) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
