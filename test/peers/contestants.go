package main

import (
	"context"
	"fmt"
	"time"

	"github.com/GoogleCloudPlatform/grpc-gcp-go/grpcgcp"
	"github.com/GoogleCloudPlatform/grpc-gcp-go/grpcgcp/grpc_gcp"
	"github.com/GoogleCloudPlatform/grpc-gcp-go/grpcgcp/multiendpoint"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/xds" // registers outlier_detection
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/understudy-lb/understudy"
)

// A contestant is a client. Its target is the DNS names of two priorities of backends.
type contestant struct {
	name, what string
	dial       func(*world) (cc grpc.ClientConnInterface, closeIt func(), err error)
}

const reference = "Recommended()"

var contestants = []contestant{
	{"zero value", "Understudy with `Options{}`, without retries or health checks", zeroValue},
	{reference, "Understudy with `Recommended()`, and with the called method listed as safe to retry", recommended},
	{"pick_first", "grpc-go, with one name for the addresses of both priorities, in order; it does not check health", stock(`{"pick_first": {}}`)},
	{"round_robin", "grpc-go, with one name for the addresses of both priorities; half of the calls go to each priority", stock(roundRobin)},
	{"outlier 10 s", "grpc-go, `outlier_detection` over `round_robin`, with A50's defaults and both ejection algorithms enforced, but with `minimumHosts` 2 and `maxEjectionPercent` 50: with A50's 5 and 10, it would never eject two of four endpoints", stock(outlierDetection("10s"))},
	{"outlier 1 s", "the same, but with an `interval` of 1 s and a `requestVolume` of 10", stock(outlierDetection("1s"))},
	{"multi-endpoint", "grpc-gcp-go, with the names of the priorities, in order; it switches without delay", multiEndpoint},
	{"fallback", "grpc-gcp-go, with a `round_robin` channel for each priority; it leaves the first priority if half of the calls in 1 s fail (including with INTERNAL), and does not return on its own", fallback},
}

// The control's backends never have a fault. If its calls fail or are slow, the machine is too
// busy, and we repeat the run.
var control = contestant{name: "control", dial: stock(roundRobin)}

const roundRobin = `{"round_robin": {}}`

func outlierDetection(interval string) string {
	volume := map[string]string{"10s": "", "1s": `, "requestVolume": 10`}[interval]
	return fmt.Sprintf(`{"outlier_detection_experimental": {"interval": %q, "maxEjectionPercent": 50,
		"successRateEjection": {"minimumHosts": 2%s},
		"failurePercentageEjection": {"enforcementPercentage": 100, "minimumHosts": 2%[2]s},
		"childPolicy": [%s]}}`, interval, volume, roundRobin)
}

// serviceConfig has the same retries and health checks as Recommended.
func serviceConfig(policy string) grpc.DialOption {
	return grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"loadBalancingConfig": [%s],
		"healthCheckConfig": {"serviceName": ""},
		"retryThrottling": {"maxTokens": 100, "tokenRatio": 0.1},
		"methodConfig": [{"name": [{"service": %q}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.05s",
			"maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`, policy, serviceName))
}

func zeroValue(w *world) (grpc.ClientConnInterface, func(), error) {
	return withClose(understudy.NewClient(w.name(firstPriority)+","+w.name(secondPriority), understudy.Options{}, w.options()...))
}

func recommended(w *world) (grpc.ClientConnInterface, func(), error) {
	given := understudy.Recommended()
	given.RetryMethods = []string{methodName}
	return withClose(understudy.NewClient(w.name(firstPriority)+","+w.name(secondPriority), given, w.options()...))
}

func stock(policy string) func(*world) (grpc.ClientConnInterface, func(), error) {
	return func(w *world) (grpc.ClientConnInterface, func(), error) {
		return withClose(grpc.NewClient("dns:///"+w.name("all"), append(w.options(), serviceConfig(policy))...))
	}
}

func withClose(cc *grpc.ClientConn, err error) (grpc.ClientConnInterface, func(), error) {
	if err != nil {
		return nil, nil, err
	}
	return cc, func() { cc.Close() }, nil //nolint:errcheck // no data can be lost
}

// multiEndpoint uses MultiEndpoint of grpc-gcp-go with the names of both priorities. Its fastest
// setting is no switching delay, so that's what we use.
func multiEndpoint(w *world) (grpc.ClientConnInterface, func(), error) {
	const name = "default"
	pool := &grpc_gcp.ApiConfig{ChannelPool: &grpc_gcp.ChannelPoolConfig{MinSize: 1, MaxSize: 1}}
	text, err := protojson.Marshal(pool)
	if err != nil {
		return nil, nil, err
	}
	config := serviceConfig(fmt.Sprintf(`{%q: %s}`, grpcgcp.Name, text))
	gme, err := grpcgcp.NewGCPMultiEndpoint(&grpcgcp.GCPMultiEndpointOptions{
		GRPCgcpConfig: pool,
		MultiEndpoints: map[string]*multiendpoint.MultiEndpointOptions{
			name: {Endpoints: []string{"dns:///" + w.name(firstPriority), "dns:///" + w.name(secondPriority)}},
		},
		Default: name,
		DialFunc: func(_ context.Context, target string, given ...grpc.DialOption) (*grpc.ClientConn, error) {
			cc, err := grpc.NewClient(target, append(given, config)...)
			if err == nil {
				cc.Connect() // MultiEndpoint only switches to endpoints that are connected
			}
			return cc, err
		},
	}, w.options()...)
	if err != nil {
		return nil, nil, err
	}
	return gme, func() { gme.Close() }, nil //nolint:errcheck // no data can be lost
}

func fallback(w *world) (grpc.ClientConnInterface, func(), error) {
	var channels []*grpc.ClientConn
	closeAll := func() {
		for _, cc := range channels {
			cc.Close() //nolint:errcheck // no data can be lost
		}
	}
	for _, priority := range []string{firstPriority, secondPriority} {
		cc, err := grpc.NewClient("dns:///"+w.name(priority), append(w.options(), serviceConfig(roundRobin))...)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		cc.Connect()
		channels = append(channels, cc)
	}
	opts := grpcgcp.NewGCPFallbackOptions()
	opts.Period, opts.ErrorRateThreshold = time.Second, 0.5
	opts.ErroneousCodes = append(opts.ErroneousCodes, codes.Internal)
	cc, err := grpcgcp.NewGCPFallback(context.Background(), channels[0], channels[1], opts)
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return cc, func() { cc.Close(); closeAll() }, nil
}
