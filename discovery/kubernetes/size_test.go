package kubernetes

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/config/options"
)

const (
	largeSlices       = 100
	endpointsPerSlice = 100
)

func largeWatch() []byte {
	var b bytes.Buffer
	for s := range largeSlices {
		fmt.Fprintf(&b, `{"type":"ADDED","object":{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"checkout-%05d","generateName":"checkout-","namespace":"shop","uid":"0b3cbd6e-5a3f-4b3e-9f7a-%012d","resourceVersion":"%d","generation":7,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io","kubernetes.io/service-name":"checkout"},"ownerReferences":[{"apiVersion":"v1","kind":"Service","name":"checkout","uid":"0b3cbd6e-5a3f-4b3e-9f7a-aaaaaaaaaaaa","controller":true,"blockOwnerDeletion":true}]},"addressType":"IPv4","endpoints":[`, s, s, 1000+s)
		for i := range endpointsPerSlice {
			n := s*endpointsPerSlice + i
			if i > 0 {
				b.WriteByte(',')
			}
			zone := string(rune('a' + n%3))
			fmt.Fprintf(&b, `{"addresses":["10.%d.%d.%d"],"conditions":{"ready":true,"serving":true,"terminating":false},"targetRef":{"kind":"Pod","namespace":"shop","name":"checkout-6d5f7c9b8d-%05d","uid":"7f1d2c3b-1111-2222-3333-%012d"},"nodeName":"ip-10-0-%d-%d.eu-central-1.compute.internal","zone":"eu-central-1%s","hints":{"forZones":[{"name":"eu-central-1%s"}]}}`,
				n>>16, n>>8&255, n&255, n, n, n/250, n%250, zone, zone)
		}
		b.WriteString(`],"ports":[{"name":"grpc","protocol":"TCP","port":8443,"appProtocol":"grpc"},{"name":"metrics","protocol":"TCP","port":9090}]}}` + "\n")
	}
	b.WriteString(bookmark("2000", true))
	return b.Bytes()
}

type readyBody struct {
	body      []byte
	requested chan struct{}
}

func (r *readyBody) RoundTrip(q *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	go func() {
		<-q.Context().Done()
		_ = writer.Close()
	}()
	r.requested <- struct{}{}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(r.body), reader), reader}}, nil
}

type stateChannel struct {
	resolver.ClientConn
	states chan resolver.State
}

func (u *stateChannel) UpdateState(s resolver.State) error { u.states <- s; return nil }
func (u *stateChannel) ReportError(error)                  {}
func (u *stateChannel) ParseServiceConfig(string) *serviceconfig.ParseResult {
	return &serviceconfig.ParseResult{}
}

// BenchmarkTenThousandEndpoints measures the CPU time of a channel's first update, with 10,000
// endpoints in 100 slices, and the part of this time for decoding JSON. The goal is 200 ms.
func BenchmarkTenThousandEndpoints(b *testing.B) {
	body := largeWatch()
	var total, decoding time.Duration
	for b.Loop() {
		rt := &readyBody{body, make(chan struct{}, 1)}
		u := &stateChannel{states: make(chan resolver.State, 8)}
		builder := options.BuilderFor(Scheme, options.Program{Sources: []any{WithTransport("http://x", rt)}})
		runtime.GC()
		start := cpu(b)
		r, err := builder.Build(targetOf(b, "kubernetes:///checkout.shop:grpc"), u, resolver.BuildOptions{})
		if err != nil {
			b.Fatal(err)
		}
		for len((<-u.states).Endpoints) < largeSlices*endpointsPerSlice {
		}
		total += cpu(b) - start
		r.Close()

		start = cpu(b)
		for s := newStream(bytes.NewReader(body)); ; {
			if problem, err := s.next(new(event)); err == io.EOF {
				break
			} else if problem != nil || err != nil {
				b.Fatal(problem, err)
			}
		}
		decoding += cpu(b) - start
	}
	n := float64(b.N)
	b.ReportMetric(total.Seconds()*1000/n, "cpu-ms/update")
	b.ReportMetric(decoding.Seconds()*1000/n, "json-ms/update")
	b.ReportMetric(float64(len(body))/largeSlices/endpointsPerSlice, "bytes/endpoint")
}

// A source may use at most 1 KiB per endpoint for both its slices and its answer.
func TestMemoryPerEndpoint(t *testing.T) {
	const maxBytes = 1 << 10
	rt := &readyBody{largeWatch(), make(chan struct{}, 1)}
	before := heap()
	counts := make(chan int, 8)
	r := new(discovery.Receiver).With(discovery.Hooks{Update: func(a discovery.Answer) error {
		n := 0
		for _, l := range a.Priorities[0].Localities {
			n += len(l.Endpoints)
		}
		counts <- n
		return nil
	}})
	s := source{query{namespace: "shop", services: "checkout", port: "grpc"}, server{host: "http://x", transport: rt}}
	started, err := discovery.Shared(s, 0, s).Start(r)
	if err != nil {
		t.Fatal(err)
	}
	if n := await(t, counts, "an update"); n != largeSlices*endpointsPerSlice {
		t.Errorf("the answer has %d endpoints, want all", n)
	}
	perEndpoint := (heap() - before) / (largeSlices * endpointsPerSlice)
	started.Close()
	t.Logf("%d bytes for each endpoint", perEndpoint)
	if perEndpoint > maxBytes || perEndpoint < 100 {
		t.Errorf("%d bytes for each endpoint, want 100 to %d", perEndpoint, maxBytes)
	}
}

func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) // fits into an int64
}
