package sim

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"
)

// dns is the DNS of a world. It is a resolver.Builder that replaces gRPC's builder for the dns
// scheme, which would use the real network.
type dns struct {
	hosts *hosts // nil if no source uses DNS names
}

// Scheme returns the scheme of gRPC's resolver.
func (d *dns) Scheme() string { return "dns" }

// Durations of gRPC's resolver.
const (
	resolveTimeout = 30 * time.Second // timeout of a lookup
	resolvePause   = 30 * time.Second // minimum pause after an answer
	resolveBackoff = time.Second      // backoff after the first failure
	longestResolve = 2 * time.Minute  // between two attempts
)

// Build looks a name up like gRPC's resolver: immediately, then on request, and with a backoff
// after a failure.
func (d *dns) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	name, port, err := net.SplitHostPort(target.Endpoint())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &lookups{dns: d, name: name, port: port, cc: cc, asked: make(chan struct{}, 1), cancel: cancel}
	l.running.Go(func() { l.run(ctx) })
	return l, nil
}

// lookUp returns the addresses of a name and the current fault of the DNS servers. The name of a
// single host contains its address, so that name is always known.
func (d *dns) lookUp(name, port string) ([]string, fault) {
	if strings.Contains(name, "-") {
		return []string{net.JoinHostPort(addressOf(name).String(), port)}, none
	}
	return d.hosts.lookUp(name)
}

// lookups are the lookups of one name for one channel.
type lookups struct {
	dns        *dns
	name, port string
	cc         resolver.ClientConn
	asked      chan struct{}
	cancel     context.CancelFunc
	running    sync.WaitGroup
}

func (l *lookups) run(ctx context.Context) {
	backoff := resolveBackoff
	for ctx.Err() == nil {
		taken := l.once(ctx)
		again := time.After(resolvePause)
		if taken {
			backoff = resolveBackoff
			select {
			case <-ctx.Done():
			case <-l.asked:
			}
		} else {
			again, backoff = time.After(backoff), min(backoff*8/5, longestResolve)
		}
		select {
		case <-ctx.Done():
		case <-again:
		}
	}
}

// once looks the name up, and reports whether the channel accepted the answer.
func (l *lookups) once(ctx context.Context) (taken bool) {
	addresses, fault := l.dns.lookUp(l.name, l.port)
	limited, cancel := context.WithTimeout(ctx, resolveTimeout)
	err := fault.error(limited, l.name)
	cancel()
	switch {
	case ctx.Err() != nil:
		return true
	case err != nil && fault != unknown: // an unknown name has no addresses
		l.cc.ReportError(fmt.Errorf("dns: A record lookup error: %w", err))
		return false
	case err != nil:
		addresses = nil
	}
	var state resolver.State
	for _, address := range addresses {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
	}
	return l.cc.UpdateState(state) == nil
}

// ResolveNow requests a lookup.
func (l *lookups) ResolveNow(resolver.ResolveNowOptions) {
	select {
	case l.asked <- struct{}{}:
	default:
	}
}

// Close ends the lookups.
func (l *lookups) Close() {
	l.cancel()
	l.running.Wait()
}

// fault is a fault of the DNS servers.
type fault int

const (
	none    fault = iota
	refused       // they answer SERVFAIL
	unknown       // they answer NXDOMAIN
	silent        // they do not respond
	noHosts       // only address lookups fail
)

// String describes the fault.
func (f fault) String() string {
	return [...]string{
		none:    "the name servers work",
		refused: "the name servers fail",
		unknown: "the name servers do not know the name",
		silent:  "the name servers do not answer",
		noHosts: "the name servers do not know the addresses",
	}[f]
}

// nameOf returns the name of the host with an address.
func nameOf(address string) string { return "h" + strings.ReplaceAll(address, ".", "-") }

// addressOf returns the address in a host's name.
func addressOf(name string) netip.Addr {
	return netip.MustParseAddr(strings.ReplaceAll(strings.TrimPrefix(name, "h"), "-", "."))
}

// error returns the error that the standard library's resolver would return, after the time that
// resolver would take.
func (f fault) error(ctx context.Context, name string) error {
	err := &net.DNSError{Name: name, Server: "10.9.0.53:53"}
	switch f {
	case refused:
		err.Err, err.IsTemporary = "server misbehaving", true
	case unknown:
		err.Err, err.IsNotFound = "no such host", true
	case silent:
		<-ctx.Done()
		err.Err, err.IsTimeout = "i/o timeout", true
	default:
		return nil
	}
	return err
}
