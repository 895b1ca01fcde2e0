package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/GoogleCloudPlatform/grpc-gcp-go/grpcgcp"
	"github.com/GoogleCloudPlatform/grpc-gcp-go/grpcgcp/grpc_gcp"
	"github.com/GoogleCloudPlatform/grpc-gcp-go/grpcgcp/multiendpoint"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/understudy-lb/understudy"
)

const firstName, secondName = "first", "second"

const keepaliveTime, keepaliveTimeout = 10 * time.Second, 2 * time.Second

func options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
	}
}

// contestant is a client that is given two tiers of backends.
type contestant struct {
	name string
	dial func(*lab) (cc grpc.ClientConnInterface, closeIt func(), err error)
}

func contestants() []contestant {
	return []contestant{
		{"Understudy, as it comes", ours(understudy.Options{})},
		{"Understudy, `outlierDetection`", ours(understudy.Options{OutlierDetection: understudy.On})},
		{"Understudy, `outlierDetection`, `warmStandby`, `fastFailover`", ours(understudy.Options{OutlierDetection: understudy.On, WarmStandby: 1, FastFailover: true})},
		{"Understudy, `Recommended()`, the method named", recommended},
		{"grpc-go `pick_first`, both tiers in one list", stock("pick_first")},
		{"grpc-go `round_robin`, both tiers in one list: half of the calls to each", stock("round_robin")},
		{"grpc-gcp-go multi-endpoint", multiEndpoint},
		{"grpc-gcp-go fallback by error rate, each second, from 50 %, INTERNAL counted", fallback},
	}
}

// ours returns a dial function with the given options.
func ours(given understudy.Options) func(*lab) (grpc.ClientConnInterface, func(), error) {
	return func(l *lab) (grpc.ClientConnInterface, func(), error) {
		return closing(understudy.NewClient("file://"+l.file, given, options()...))
	}
}

// recommended dials with the recommended options, and declares the method as safe to retry.
func recommended(l *lab) (grpc.ClientConnInterface, func(), error) {
	given := understudy.Recommended()
	given.RetryMethods = []string{methodName}
	return closing(understudy.NewClient("file://"+l.file, given, grpc.WithTransportCredentials(insecure.NewCredentials())))
}

// stock returns a dial function for a grpc-go policy that gets the addresses of both tiers in one
// list.
func stock(policy string) func(*lab) (grpc.ClientConnInterface, func(), error) {
	return func(l *lab) (grpc.ClientConnInterface, func(), error) {
		return closing(list(policy, slices.Concat(l.first.addresses, l.second.addresses)))
	}
}

// list dials a fixed list of addresses with a grpc-go policy.
func list(policy string, addresses []string) (*grpc.ClientConn, error) {
	var state resolver.State
	for _, a := range addresses {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	r := manual.NewBuilderWithScheme("fixed")
	r.InitialState(state)
	config := fmt.Sprintf(`{"loadBalancingConfig": [{%q: {}}]}`, policy)
	return grpc.NewClient("fixed:///list", append(options(), grpc.WithResolvers(r), grpc.WithDefaultServiceConfig(config))...)
}

func closing(cc *grpc.ClientConn, err error) (grpc.ClientConnInterface, func(), error) {
	if err != nil {
		return nil, nil, err
	}
	return cc, func() { cc.Close() }, nil //nolint:errcheck // no data can be lost
}

// multiEndpoint uses grpc-gcp-go's MultiEndpoint with the four addresses in order of preference. It
// switches without delay, which is the fastest setting.
func multiEndpoint(l *lab) (grpc.ClientConnInterface, func(), error) {
	const name = "default"
	gme, err := grpcgcp.NewGCPMultiEndpoint(&grpcgcp.GCPMultiEndpointOptions{
		GRPCgcpConfig: &grpc_gcp.ApiConfig{ChannelPool: &grpc_gcp.ChannelPoolConfig{MinSize: 1, MaxSize: 1}},
		MultiEndpoints: map[string]*multiendpoint.MultiEndpointOptions{
			name: {Endpoints: slices.Concat(l.first.addresses, l.second.addresses)},
		},
		Default: name,
	}, options()...)
	if err != nil {
		return nil, nil, err
	}
	return gme, func() { gme.Close() }, nil //nolint:errcheck // no data can be lost
}

// fallback uses grpc-gcp-go's fallback: a channel to each tier. It leaves the first tier if half of
// the calls fail within a second.
func fallback(l *lab) (grpc.ClientConnInterface, func(), error) {
	primary, err := list("round_robin", l.first.addresses)
	if err != nil {
		return nil, nil, err
	}
	secondary, err := list("round_robin", l.second.addresses)
	if err != nil {
		return nil, nil, errors.Join(err, primary.Close())
	}
	secondary.Connect()
	opts := grpcgcp.NewGCPFallbackOptions()
	opts.Period, opts.ErrorRateThreshold = time.Second, 0.5
	opts.ErroneousCodes = append(opts.ErroneousCodes, codes.Internal)
	cc, err := grpcgcp.NewGCPFallback(context.Background(), primary, secondary, opts)
	closeAll := func() {
		primary.Close()   //nolint:errcheck // no data can be lost
		secondary.Close() //nolint:errcheck // no data can be lost
	}
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return cc, func() { cc.Close(); closeAll() }, nil
}

// lab is two running tiers, and an endpoints file that lists them.
type lab struct {
	first, second *tier
	dir, file     string
}

func startLab(relayed bool) (*lab, error) {
	l := &lab{}
	err := l.fill(relayed)
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lab) fill(relayed bool) (err error) {
	if l.first, err = startTier(firstName, relayed); err != nil {
		return err
	}
	if l.second, err = startTier(secondName, relayed); err != nil {
		return err
	}
	if l.dir, err = os.MkdirTemp("", "understudy"); err != nil {
		return err
	}
	l.file = filepath.Join(l.dir, "endpoints.yaml")
	var b strings.Builder
	b.WriteString("cluster_name: shop\nendpoints:\n")
	for priority, t := range []*tier{l.first, l.second} {
		fmt.Fprintf(&b, "- locality: {region: %s}\n  priority: %d\n  load_balancing_weight: 1\n  lb_endpoints:\n", t.name, priority)
		for _, a := range t.addresses {
			host, port, _ := strings.Cut(a, ":")
			fmt.Fprintf(&b, "  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", host, port)
		}
	}
	if err = os.WriteFile(l.file, []byte(b.String()), 0o600); err != nil {
		return err
	}
	before := time.Now().Add(-time.Minute) // make the file look old, because the source waits until a new file is complete
	return os.Chtimes(l.file, before, before)
}

func (l *lab) close() {
	for _, t := range []*tier{l.first, l.second} {
		if t != nil {
			t.close()
		}
	}
	os.RemoveAll(l.dir) //nolint:errcheck // the directory is temporary
}
