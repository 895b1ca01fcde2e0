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

// dns is a resolver builder for the scheme dns. It replaces gRPC's, which would use the real
// network.
type dns struct {
	hosts *hosts // nil if no source uses DNS names
}

func (d *dns) Scheme() string { return "dns" }

// Timeouts and intervals of gRPC's DNS resolver.
const (
	resolveTimeout    = 30 * time.Second
	resolvePause      = 30 * time.Second // the shortest time between an answer and the next lookup
	resolveBackoff    = time.Second      // the time between the first failure and the next lookup
	maxResolveBackoff = 2 * time.Minute  // the longest time between a failure and the next lookup
)

// Build starts the lookups of a name. Like gRPC's resolver, the returned resolver looks the name up
// immediately, after each ResolveNow, and with a backoff after a failure.
func (d *dns) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	name, port, err := net.SplitHostPort(target.Endpoint())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &lookups{dns: d, name: name, port: port, cc: cc, requested: make(chan struct{}, 1), cancel: cancel}
	l.running.Go(func() { l.run(ctx) })
	return l, nil
}

func (d *dns) lookUp(name, port string) ([]string, fault) {
	if strings.Contains(name, "-") {
		return []string{net.JoinHostPort(addressOf(name).String(), port)}, noFault
	}
	return d.hosts.lookUp(name)
}

// lookups repeats the lookup of one name for one channel.
type lookups struct {
	dns        *dns
	name, port string
	cc         resolver.ClientConn
	requested  chan struct{}
	cancel     context.CancelFunc
	running    sync.WaitGroup
}

func (l *lookups) run(ctx context.Context) {
	backoff := resolveBackoff
	for ctx.Err() == nil {
		accepted := l.lookUpOnce(ctx)
		next := time.After(resolvePause)
		if accepted {
			backoff = resolveBackoff
			select {
			case <-ctx.Done():
			case <-l.requested:
			}
		} else {
			next, backoff = time.After(backoff), min(backoff*8/5, maxResolveBackoff)
		}
		select {
		case <-ctx.Done():
		case <-next:
		}
	}
}

func (l *lookups) lookUpOnce(ctx context.Context) (accepted bool) {
	addresses, fault := l.dns.lookUp(l.name, l.port)
	limited, cancel := context.WithTimeout(ctx, resolveTimeout)
	err := fault.lookupError(limited, l.name)
	cancel()
	switch {
	case ctx.Err() != nil:
		return true
	case err != nil && fault != nxDomain: // a name that does not exist has no addresses
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

func (l *lookups) ResolveNow(resolver.ResolveNowOptions) {
	select {
	case l.requested <- struct{}{}:
	default:
	}
}

func (l *lookups) Close() {
	l.cancel()
	l.running.Wait()
}

type fault int

const (
	noFault     fault = iota
	servFail          // the name servers answer SERVFAIL
	nxDomain          // the name servers answer NXDOMAIN
	noReply           // the name servers do not answer
	noAddresses       // lookups of addresses fail, and lookups of SRV records succeed
)

func (f fault) String() string {
	return [...]string{
		noFault:     "the name servers work",
		servFail:    "the name servers fail",
		nxDomain:    "the name servers do not know the name",
		noReply:     "the name servers do not answer",
		noAddresses: "the name servers do not know the addresses",
	}[f]
}

func nameOf(address string) string { return "h" + strings.ReplaceAll(address, ".", "-") }

func addressOf(name string) netip.Addr {
	return netip.MustParseAddr(strings.ReplaceAll(strings.TrimPrefix(name, "h"), "-", "."))
}

func (f fault) lookupError(ctx context.Context, name string) error {
	err := &net.DNSError{Name: name, Server: "10.9.0.53:53"}
	switch f {
	case servFail:
		err.Err, err.IsTemporary = "server misbehaving", true
	case nxDomain:
		err.Err, err.IsNotFound = "no such host", true
	case noReply:
		<-ctx.Done()
		err.Err, err.IsTimeout = "i/o timeout", true
	default:
		return nil
	}
	return err
}
