package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy/internal/testing/dnstest"
)

const firstPriority, secondPriority = "first", "second"

const perPriority = 2

// A world is everything that belongs to one client: two priorities of backends, their DNS names,
// and the client's connections. All that worlds have in common is the DNS server.
type world struct {
	dns                  *dnstest.Server
	number               uint32
	first, second, spare []*backend // spare replaces first when the DNS name changes
	trusted              *x509.CertPool

	attempts atomic.Int64

	mu      sync.Mutex
	conns   []clientConn
	dropped map[string]bool // addresses whose packets to the client are dropped
}

type clientConn struct {
	address string
	conn    *net.TCPConn
}

// Each world has its own IP addresses, so it can't get the address of another world's killed
// backend. Processes that run at the same time use different ports.
var (
	worlds atomic.Uint32
	port   = 20_000 + os.Getpid()%10_000
)

func newWorld(dns *dnstest.Server, secure bool) (*world, error) {
	w := &world{dns: dns, number: worlds.Add(1), dropped: make(map[string]bool)}
	var certificate *tls.Certificate
	if secure {
		var err error
		if certificate, err = newCertificate(); err != nil {
			return nil, err
		}
		w.trusted = x509.NewCertPool()
		w.trusted.AddCert(certificate.Leaf)
	}
	host := 0
	for _, priority := range []struct {
		name     string
		backends *[]*backend
	}{{firstPriority, &w.first}, {secondPriority, &w.second}, {firstPriority, &w.spare}} {
		for range perPriority {
			host++
			address := fmt.Sprintf("127.%d.%d.%d:%d", 10+w.number>>8, w.number&255, host, port)
			b, err := startBackend(priority.name, address, certificate)
			if err != nil {
				w.close()
				return nil, err
			}
			*priority.backends = append(*priority.backends, b)
		}
	}
	w.publish(w.first)
	return w, nil
}

func (w *world) publish(first []*backend) {
	one, two := ips(first), ips(w.second)
	w.dns.Set(w.host(firstPriority), "A", one...)
	w.dns.Set(w.host(secondPriority), "A", two...)
	w.dns.Set(w.host("all"), "A", slices.Concat(one, two)...)
}

func ips(backends []*backend) (all []string) {
	for _, b := range backends {
		host, _, _ := net.SplitHostPort(b.address)
		all = append(all, host)
	}
	return all
}

func (w *world) host(priority string) string {
	return fmt.Sprintf("%s-%d.league.test", priority, w.number)
}

// name returns the target for a priority. "all" has the addresses of both.
func (w *world) name(priority string) string { return fmt.Sprintf("%s:%d", w.host(priority), port) }

func (w *world) options() []grpc.DialOption {
	security := insecure.NewCredentials()
	if w.trusted != nil {
		security = credentials.NewTLS(&tls.Config{RootCAs: w.trusted})
	}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(security),
		grpc.WithContextDialer(w.connect),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
	}
}

const keepaliveTime, keepaliveTimeout = 10 * time.Second, 5 * time.Second // same as in Recommended

func (w *world) connect(ctx context.Context, address string) (net.Conn, error) {
	w.attempts.Add(1)
	d := net.Dialer{Control: func(_, _ string, socket syscall.RawConn) error {
		if w.dropsFrom(address) {
			return dropReceived(socket)
		}
		return nil
	}}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := clientConn{address, conn.(*net.TCPConn)}
	w.conns = append(w.conns, c)
	if w.dropped[address] {
		c.drop()
	}
	return conn, nil
}

func (w *world) dropsFrom(address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped[address]
}

// dropAnswers makes the kernel drop all packets from these backends to the client.
func (w *world) dropAnswers(backends []*backend) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range backends {
		w.dropped[b.address] = true
	}
	for _, c := range w.conns {
		if w.dropped[c.address] {
			c.drop()
		}
	}
}

func (c clientConn) drop() {
	if socket, err := c.conn.SyscallConn(); err == nil {
		dropReceived(socket) //nolint:errcheck // the connection may be closed already
	}
}

func (w *world) close() {
	for _, b := range slices.Concat(w.first, w.second, w.spare) {
		b.reset()
		b.kill()
	}
}

func each(backends []*backend, f func(*backend) error) error {
	var errs []error
	for _, b := range backends {
		errs = append(errs, f(b))
	}
	return errors.Join(errs...)
}
