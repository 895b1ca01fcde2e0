package adstest

import (
	"net"
	"sync"
	"sync/atomic"
)

// Cable wraps conn. After cut, everything that is sent in either direction is lost, and neither
// side sees the connection end. If full is set, writes block instead.
func Cable(conn net.Conn) (cabled net.Conn, cut func(full bool)) {
	c := &cable{Conn: conn, closed: make(chan struct{})}
	return c, func(full bool) {
		c.full.Store(full)
		c.cut.Store(true)
	}
}

type cable struct {
	net.Conn
	cut    atomic.Bool
	full   atomic.Bool
	once   sync.Once
	closed chan struct{}
}

func (c *cable) Write(b []byte) (int, error) {
	if c.cut.Load() {
		if c.full.Load() {
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
