//go:build metrics

package interop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats/opentelemetry"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/eds"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

type memoryNetwork struct {
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	servers   map[string]interface{ Stop() }
	failing   map[string]bool
	hang      bool // all backends
}

func (l *memoryNetwork) dial(ctx context.Context, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	l.mu.Lock()
	listener := l.listeners[host]
	l.mu.Unlock()
	if listener == nil {
		return nil, errors.New("dial tcp " + address + ": connect: connection refused")
	}
	return listener.DialContext(ctx)
}

func (l *memoryNetwork) setHang(hang bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hang = hang
}

func (l *memoryNetwork) start(host string, start func(net.Listener) interface{ Stop() }) {
	listener := bufconn.Listen(1 << 16)
	server := start(listener)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners[host], l.servers[host] = listener, server
}

func (l *memoryNetwork) stop(hosts ...string) {
	for _, host := range hosts {
		l.mu.Lock()
		server := l.servers[host]
		delete(l.listeners, host)
		delete(l.servers, host)
		l.mu.Unlock()
		server.Stop()
	}
}

func (l *memoryNetwork) backend(host string) {
	l.start(host, func(listener net.Listener) interface{ Stop() } {
		server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			l.mu.Lock()
			sick, hangs := l.failing[host], l.hang
			l.mu.Unlock()
			if hangs {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if sick {
				return nil, status.Error(codes.Unavailable, "sick")
			}
			return handle(ctx, req)
		}))
		healthpb.RegisterHealthServer(server, health.NewServer())
		go server.Serve(listener)
		return server
	})
}

// shop returns a cluster with drops and two priorities. The first priority has two endpoints, and
// the second has one.
func shop() *endpointv3.ClusterLoadAssignment {
	near, far := adstest.Cluster("shop", "10.0.0.1:1", "10.0.0.2:1"), adstest.Cluster("shop", "10.0.0.3:1")
	near.Endpoints[0].Locality = &corev3.Locality{Region: "near"}
	far.Endpoints[0].Locality = &corev3.Locality{Region: "far"}
	far.Endpoints[0].Priority = 1
	near.Endpoints = append(near.Endpoints, far.Endpoints...)
	near.Policy = &endpointv3.ClusterLoadAssignment_Policy{DropOverloads: []*endpointv3.ClusterLoadAssignment_Policy_DropOverload{
		{Category: "overload", DropPercentage: &typev3.FractionalPercent{Numerator: 20}},
	}}
	return near
}

// managementScript returns the script of a management server. It sends a resource type that was not
// requested, then the cluster shop, and then the clusters from more. It does not have the cluster
// "nothing".
func managementScript(more <-chan *endpointv3.ClusterLoadAssignment) adstest.Script {
	return func(s *adstest.Stream) error {
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Send(&discoveryv3.DiscoveryResponse{TypeUrl: "type.googleapis.com/envoy.config.listener.v3.Listener", Nonce: "0"}); err != nil {
			return err
		}
		if err := s.Respond("1", "1", shop()); err != nil {
			return err
		}
		go func() { _ = s.Drain() }()
		for {
			select {
			case <-s.Context().Done():
				return s.Context().Err()
			case cluster := <-more:
				if err := s.Respond("2", "2", cluster); err != nil {
					return err
				}
			}
		}
	}
}

// exportedLabels returns the label sets of each metric whose value is not 0. The key consists
// of the name and the kind of the metric.
func exportedLabels(t *testing.T, reader metric.Reader) map[string][]attribute.Set {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	sets := make(map[string][]attribute.Set)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[int64]
			kind := ""
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				points, kind = data.DataPoints, "up-down counter"
				if data.IsMonotonic {
					kind = "counter"
				}
			case metricdata.Gauge[int64]:
				points, kind = data.DataPoints, "gauge"
			}
			for _, p := range points {
				if p.Value == 0 {
					continue
				}
				sets[m.Name+" "+kind] = append(sets[m.Name+" "+kind], p.Attributes)
			}
		}
	}
	return sets
}

// endpointFailures returns the number of series of endpoints that have failed, by failure.
func endpointFailures(t *testing.T, reader metric.Reader) map[string]int {
	t.Helper()
	count := make(map[string]int)
	for _, set := range exportedLabels(t, reader)["understudy.endpoints gauge"] {
		if state, _ := set.Value("understudy.endpoint.state"); state.AsString() == "TRANSIENT_FAILURE" {
			failure, _ := set.Value("understudy.endpoint.failure")
			count[failure.AsString()]++
		}
	}
	return count
}

// From metrics alone, a reader can tell a priority with a wrong certificate from one that is gone.
func TestWrongCertificateIsTold(t *testing.T) {
	t.Parallel()
	ca := testcert.New(t)
	serve := func(name string) string {
		certificate := ca.Pair(name, name).Load(t)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
		healthpb.RegisterHealthServer(server, health.NewServer())
		go server.Serve(listener)
		t.Cleanup(server.Stop)
		return listener.Addr().String()
	}
	reader := metric.NewManualReader()
	conn, err := understudy.NewClient("failover:///"+serve("stranger.test")+","+given.Address(t)+","+serve("shop.test")+"?authority=shop.test", understudy.Recommended(),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()})),
		opentelemetry.DialOption(opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	if got, want := endpointFailures(t, reader), map[string]int{"tls": 1, "other": 1}; !maps.Equal(got, want) {
		t.Errorf("endpoints by failure: %v, want %v", got, want)
	}
}

// documentedLabels returns the labels of each metric in docs/metrics.md. The key consists of the
// name and the kind of the metric.
func documentedLabels(t *testing.T) map[string][]string {
	t.Helper()
	document, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	for line := range strings.Lines(string(document)) {
		cells := strings.Split(line, "|")
		if len(cells) < 7 || !strings.HasPrefix(cells[1], " `understudy.") {
			continue
		}
		var labels []string
		for _, label := range strings.Split(cells[4]+","+cells[5], ",") {
			if label = strings.Trim(label, " `"); label != "" && label != "none" {
				labels = append(labels, label)
			}
		}
		slices.Sort(labels)
		all[strings.Trim(cells[1], " `")+" "+strings.TrimSpace(cells[2])] = labels
	}
	return all
}

// The test causes all events that metrics count. OpenTelemetry must then export every metric in
// docs/metrics.md, with the documented kind and labels.
func TestOpenTelemetryExportsEveryMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := metric.NewManualReader()
		options := opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{
			MeterProvider:  metric.NewMeterProvider(metric.WithReader(reader)),
			OptionalLabels: []string{"grpc.lb.backend_service"},
		}}
		l := &memoryNetwork{listeners: map[string]*bufconn.Listener{}, servers: map[string]interface{ Stop() }{}, failing: map[string]bool{"10.0.0.2": true}}
		override := &adsclient.Network{Dial: l.dial}
		builder := given.Builder(eds.Scheme, given.Sources(eds.WithInsecure()), given.Sources(discovery.OwnOption(func(o *adsclient.Options) { o.Network = override })))
		dial := func(target string) *grpc.ClientConn {
			conn, err := grpc.NewClient(target, grpc.WithResolvers(builder), grpc.WithContextDialer(l.dial),
				grpc.WithTransportCredentials(insecure.NewCredentials()), opentelemetry.DialOption(options))
			if err != nil {
				t.Fatal(err)
			}
			conn.Connect()
			return conn
		}
		calls := func(conn *grpc.ClientConn, n int) (answered int) {
			for range n {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}); err == nil {
					answered++
				}
				cancel()
			}
			synctest.Wait()
			return answered
		}
		for _, host := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
			l.backend(host)
		}
		conn, none := dial("eds://10.0.0.9:1/shop?outlierDetection=true"), dial("eds://10.0.0.9:1/nothing")
		time.Sleep(time.Second)
		more := make(chan *endpointv3.ClusterLoadAssignment)
		l.start("10.0.0.9", func(listener net.Listener) interface{ Stop() } {
			return adstest.Serve(listener, managementScript(more))
		})
		time.Sleep(20 * time.Second) // cluster "nothing" now counts as missing
		calls(conn, 50)              // enough calls to eject the failing endpoint
		if got := calls(conn, 200); got < 120 {
			t.Errorf("%d of 200 calls succeeded, want at least 120", got)
		}
		if got := endpointFailures(t, reader); got["ejected"] != 1 {
			t.Errorf("endpoints by failure: %v, want one that is ejected", got)
		}
		// No priority answers, so calls are shed.
		full := dial("eds://10.0.0.9:1/shop?overflow=true")
		calls(full, 1)
		l.setHang(true)
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				for range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					_, _ = healthpb.NewHealthClient(full).Check(ctx, &healthpb.HealthCheckRequest{})
					cancel()
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		callers.Wait()
		l.setHang(false)
		exportedLabels(t, reader)
		bad := shop()
		bad.Endpoints[0].Priority = 7
		more <- bad
		synctest.Wait()
		l.stop("10.0.0.1", "10.0.0.2")
		time.Sleep(time.Second)
		calls(conn, 100)

		got, want := exportedLabels(t, reader), documentedLabels(t)
		targets := []string{"eds://10.0.0.9:1/shop", "eds://10.0.0.9:1/nothing"} // as gRPC reports them
		if len(want) < 10 {
			t.Fatalf("the document has %d metrics", len(want))
		}
		for metric, labels := range want {
			if len(got[metric]) == 0 {
				t.Errorf("%s was not exported", metric)
			}
			for _, set := range got[metric] {
				if target, ok := set.Value("grpc.target"); ok && !slices.Contains(targets, target.AsString()) {
					t.Errorf("%s was exported for the target %q, want one of %q", metric, target.AsString(), targets)
				}
				var names []string
				for _, label := range set.ToSlice() {
					names = append(names, string(label.Key))
				}
				if !slices.Equal(names, labels) {
					t.Errorf("%s was exported with the labels %v, want %v", metric, set.ToSlice(), labels)
				}
			}
		}
		refused := attribute.NewSet(attribute.String("grpc.target", targets[0]), attribute.String("understudy.source", "eds"), attribute.String("understudy.source.result", "refused"))
		if updates := got["understudy.source.updates counter"]; !slices.Contains(updates, refused) {
			t.Errorf("the rejected update is not among %v", updates)
		}
		for metric, sets := range got {
			if _, listed := want[metric]; strings.HasPrefix(metric, "understudy.") && !listed {
				t.Errorf("%s was exported but is not in the document", metric)
			}
			if testing.Verbose() {
				for _, set := range sets {
					fmt.Println(metric, set.ToSlice())
				}
			}
		}
		conn.Close()
		none.Close()
		full.Close()
		l.stop("10.0.0.3", "10.0.0.9")
	})
}
