package kubernetes

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

const unknownPort = "slice b of web.shop: the target gives no port; want one of grpc-web:8080, metrics:9090"

// twoPorts returns a slice event whose port is unknown to a target without a port.
func twoPorts(kind, name, endpoints string) string {
	return strings.Replace(sliceEvent(kind, name, endpoints), `"ports":[{"name":"grpc","port":80}]`, `"ports":[{"name":"metrics","port":9090},{"name":"grpc-web","port":8080}]`, 1)
}

// The Service gets a second port, so that the port of its pods is unknown. They stay in use as long
// as one of them exists. Once all pods have been replaced, calls must fail with the reason.
func TestPodsWithUnknownPort(t *testing.T) {
	for name, remove := range map[string]string{
		"deleted":     "",
		"not serving": `{"addresses":["10.0.0.1"],` + notServing + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeAPIServer{}
				s.serve = func(_ int, _ url.Values, w io.Writer, done <-chan struct{}) int {
					writeAll(w, sliceEvent("ADDED", "a", "10.0.0.1,10.0.0.2"), bookmark("7", true))
					time.Sleep(time.Second)
					writeAll(w, twoPorts("ADDED", "b", "10.0.0.1,10.0.0.2"), sliceEvent("DELETED", "a", ""))
					time.Sleep(time.Minute)
					writeAll(w, twoPorts("MODIFIED", "b", "10.0.0.1,10.0.0.3"))
					time.Sleep(time.Minute)
					writeAll(w, twoPorts("MODIFIED", "b", strings.TrimSuffix(`{"addresses":["10.0.0.3"]},`+remove, ",")))
					time.Sleep(time.Minute)
					writeAll(w, sliceEvent("ADDED", "c", "10.0.0.3"))
					return waitUntilDone(done)
				}
				l, stop := startSource(t, s, query{})
				time.Sleep(90 * time.Second)
				if got := formatEndpoints(l.answer()); got != "0/10.0.0.1:80=healthy 0/10.0.0.2:80=healthy" || !strings.Contains(l.takeReports(), "fail "+unknownPort) {
					t.Errorf("while a pod exists, the answer is %q, want it to stay", got)
				}
				time.Sleep(time.Minute)
				if a := l.answer(); len(a.Priorities) != 0 || !a.Empty || a.Why != unknownPort {
					t.Errorf("without the pods, the answer is %q, %v, %q; want none, with the reason", formatEndpoints(a), a.Empty, a.Why)
				}
				time.Sleep(time.Minute)
				if a := l.answer(); formatEndpoints(a) != "0/10.0.0.3:80=healthy" || a.Why != "" {
					t.Errorf("with a known port, the answer is %q, %q", formatEndpoints(a), a.Why)
				}
				stop()
			})
		})
	}
}

// If no port was ever known, the source fails, and an idle channel may use what it has stored.
func TestPortIsUnknownFromTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPIServer{serve: func(_ int, _ url.Values, w io.Writer, done <-chan struct{}) int {
			writeAll(w, twoPorts("ADDED", "b", "10.0.0.1"), bookmark("7", true))
			time.Sleep(time.Second)
			writeAll(w, twoPorts("MODIFIED", "b", "10.0.0.2"))
			return waitUntilDone(done)
		}}
		l, stop := startSource(t, s, query{})
		time.Sleep(time.Minute)
		if got := l.takeReports(); !strings.Contains(got, "fail "+unknownPort) || strings.Contains(got, "update") {
			t.Errorf("the receiver got %q, want failures", got)
		}
		stop()
	})
}

func TestCallErrorSaysThatPortIsUnknown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	backend := grpc.NewServer()
	healthpb.RegisterHealthServer(backend, health.NewServer())
	go func() { _ = backend.Serve(listener) }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	replaced := make(chan struct{})
	s := &fakeAPIServer{serve: func(_ int, _ url.Values, w io.Writer, done <-chan struct{}) int {
		writeAll(w, strings.Replace(sliceEvent("ADDED", "a", "127.0.0.1"), `"port":80`, `"port":`+port, 1), bookmark("7", true))
		<-replaced
		writeAll(w, twoPorts("ADDED", "b", "127.0.0.2"), strings.Replace(sliceEvent("MODIFIED", "a", ""), `"port":80`, `"port":`+port, 1))
		return waitUntilDone(done)
	}}
	cc, err := understudy.NewClient("kubernetes:///web.shop", understudy.Options{Sources: []discovery.SourceOption{WithTransport("http://x", s)}},
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := healthpb.NewHealthClient(cc)
	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	backend.Stop()
	close(replaced)
	for err == nil || !strings.Contains(err.Error(), unknownPort) {
		if _, err = client.Check(ctx, &healthpb.HealthCheckRequest{}); ctx.Err() != nil {
			t.Fatalf("calls fail with %v, want the reason %s", err, unknownPort)
		}
	}
}
