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

// dns replaces gRPC's resolver for the scheme dns, which would use the real network.
type dns struct {
	hosts *hosts // nil if no source uses DNS names
}

func (d *dns) Scheme() string { return "dns" }

// Timeouts and intervals of gRPC's DNS resolver.
const (
	resolveTimeout = 30 * time.Second
	resolvePause   = 30 * time.Second // at least, between an answer and the next lookup
	resolveBackoff = time.Second      // between the first failure and the next lookup
	longestResolve = 2 * time.Minute  // at most, between two lookups
)

// Build starts the lookups of a name. Like gRPC's resolver, it looks the name up at once, on
// request, and with a backoff after a failure.
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

func (d *dns) lookUp(name, port string) ([]string, fault) {
	if strings.Contains(name, "-") {
		return []string{net.JoinHostPort(addressOf(name).String(), port)}, none
	}
	return d.hosts.lookUp(name)
}

// lookups repeats the lookup of one name for one channel.
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

// once looks the name up, and reports whether the channel has accepted the answer.
func (l *lookups) once(ctx context.Context) (taken bool) {
	addresses, fault := l.dns.lookUp(l.name, l.port)
	limited, cancel := context.WithTimeout(ctx, resolveTimeout)
	err := fault.error(limited, l.name)
	cancel()
	switch {
	case ctx.Err() != nil:
		return true
	case err != nil && fault != unknown: // a name that does not exist has no addresses
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
	case l.asked <- struct{}{}:
	default:
	}
}

func (l *lookups) Close() {
	l.cancel()
	l.running.Wait()
}

type fault int

const (
	none    fault = iota
	refused       // answer SERVFAIL
	unknown       // answer NXDOMAIN
	silent        // do not answer
	noHosts       // lookups of addresses fail, and others do not
)

func (f fault) String() string {
	return [...]string{
		none:    "the name servers work",
		refused: "the name servers fail",
		unknown: "the name servers do not know the name",
		silent:  "the name servers do not answer",
		noHosts: "the name servers do not know the addresses",
	}[f]
}

func nameOf(address string) string { return "h" + strings.ReplaceAll(address, ".", "-") }

func addressOf(name string) netip.Addr {
	return netip.MustParseAddr(strings.ReplaceAll(strings.TrimPrefix(name, "h"), "-", "."))
}

// error waits as long as the standard library's resolver would, and returns its error.
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
