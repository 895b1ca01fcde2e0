package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/testing/dnstest"
)

// contestant is a library with certain settings. connections is how many connections each of its
// channels opens at the start.
type contestant struct {
	name        string
	connections int
	dial        func(*lab, ...grpc.DialOption) (*grpc.ClientConn, error)
}

const baseline = "grpc-go round_robin"

// zeroOptions has no standbys and so on, because grpc-go doesn't have them either.
var zeroOptions = understudy.Options{}

var standby = understudy.Options{WarmStandby: 1, Overflow: true}

func recommended() understudy.Options {
	options := understudy.Recommended()
	options.RetryMethods = []string{methodName}
	return options
}

func contestants() []contestant {
	return []contestant{
		{"file:", 2, func(l *lab, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
			return understudy.NewClient("file://"+l.file, zeroOptions, opts...)
		}},
		{"failover:", 2, func(l *lab, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
			return understudy.NewClient("failover:///"+l.dnsTarget("first", l.first.port)+","+l.dnsTarget("second", l.second.port), zeroOptions, opts...)
		}},
		{"file: with a standby", 4, func(l *lab, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
			return understudy.NewClient("file://"+l.file, standby, opts...)
		}},
		{"failover: with a standby", 4, func(l *lab, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
			return understudy.NewClient("failover:///"+l.dnsTarget("first", l.first.port)+","+l.dnsTarget("second", l.second.port), standby, opts...)
		}},
		{"file: as recommended", 4, func(l *lab, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
			return understudy.NewClient("file://"+l.file, recommended(), opts...)
		}},
		{"failover: as recommended", 4, func(l *lab, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
			return understudy.NewClient("failover:///"+l.dnsTarget("first", l.first.port)+","+l.dnsTarget("second", l.second.port), recommended(), opts...)
		}},
		{"grpc-go pick_first", 1, stock("pick_first", fixedList)},
		{"grpc-go pick_first, DNS", 1, stock("pick_first", resolvedByDNS)},
		{baseline, 4, stock("round_robin", fixedList)},
		{baseline + ", DNS", 4, stock("round_robin", resolvedByDNS)},
		{baseline + ", told of the second tier when asked", 2, stock("round_robin", switchedOnRequest)},
	}
}

func stock(policy string, targetFor func(*lab) (string, resolver.Builder)) func(*lab, ...grpc.DialOption) (*grpc.ClientConn, error) {
	return func(l *lab, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
		target, r := targetFor(l)
		config := fmt.Sprintf(`{"loadBalancingConfig": [{%q: {}}]}`, policy)
		return grpc.NewClient(target, append(opts, grpc.WithResolvers(r), grpc.WithDefaultServiceConfig(config))...)
	}
}

func fixedList(l *lab) (string, resolver.Builder) {
	r := manual.NewBuilderWithScheme("fixed")
	r.InitialState(stateOf(append(l.first.addresses(), l.second.addresses()...)))
	return "fixed:///both", r
}

// switchedOnRequest has a resolver that sends the first group's addresses. When gRPC requests a
// re-resolution, it switches to the second group's.
func switchedOnRequest(l *lab) (string, resolver.Builder) {
	r := manual.NewBuilderWithScheme("told")
	r.InitialState(stateOf(l.first.addresses()))
	var once sync.Once
	r.ResolveNowCallback = func(resolver.ResolveNowOptions) {
		once.Do(func() { go r.UpdateState(stateOf(l.second.addresses())) })
	}
	return "told:///tiers", r
}

func resolvedByDNS(l *lab) (string, resolver.Builder) {
	return l.dnsTarget("both", l.first.port), resolver.Get("dns")
}

func stateOf(addresses []string) (state resolver.State) {
	for _, a := range addresses {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	return state
}

type lab struct {
	first, second *tier
	dns           *dnstest.Server
	dir, file     string
}

func startLab() (*lab, error) {
	l := &lab{dns: dnstest.Start()}
	err := l.start()
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lab) start() (err error) {
	if l.first, err = startTier("first", "0", "127.0.0.1", "127.0.0.2"); err != nil {
		return err
	}
	if l.second, err = startTier("second", l.first.port, "127.0.0.3", "127.0.0.4"); err != nil {
		return err
	}
	for _, t := range []*tier{l.first, l.second} {
		l.dns.Set(t.name+".test", "A", t.ips...)
	}
	l.dns.Set("both.test", "A", append(slices.Clone(l.first.ips), l.second.ips...)...)
	if l.dir, err = os.MkdirTemp("", "understudy"); err != nil {
		return err
	}
	l.file = filepath.Join(l.dir, "endpoints.yaml")
	return os.WriteFile(l.file, []byte(l.document()), 0o600)
}

func (l *lab) dnsTarget(name, port string) string {
	return fmt.Sprintf("dns://%s/%s.test:%s", l.dns.Address(), name, port)
}

func (l *lab) lookups() int {
	n := 0
	for _, name := range []string{"first.test", "second.test", "both.test"} {
		n += l.dns.Asked(name, "A")
	}
	return n
}

func (l *lab) document() string {
	var b strings.Builder
	b.WriteString("cluster_name: shop\nendpoints:\n")
	for priority, t := range []*tier{l.first, l.second} {
		fmt.Fprintf(&b, "- locality: {region: %s}\n  priority: %d\n  load_balancing_weight: 1\n  lb_endpoints:\n", t.name, priority)
		for _, ip := range t.ips {
			fmt.Fprintf(&b, "  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", ip, t.port)
		}
	}
	return b.String()
}

func (l *lab) close() {
	for _, t := range []*tier{l.first, l.second} {
		if t != nil {
			t.kill()
		}
	}
	l.dns.Stop()
	os.RemoveAll(l.dir) //nolint:errcheck // it is temporary
}

var plaintext = grpc.WithTransportCredentials(insecure.NewCredentials())
