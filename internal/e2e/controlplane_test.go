package e2e

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	_ "github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// A management server stops and starts. Calls succeed while a backend is available. Errors and the
// log name the missing server or priority.
func TestErrorsAndLogWithoutControlPlane(t *testing.T) {
	backend := startServer(t, "near", nil)
	listener := listen(t)
	address := listener.Addr().String()
	listener.Close()
	var log safeBuffer
	cc := newClient(t, "eds://"+address+"/shop", given.Dial(given.Set("Logger", slog.New(slog.NewTextHandler(&log, nil)))))

	_, err := who(timeoutContext(t, time.Minute), cc)
	want := `eds: no endpoints of cluster "shop" from dns:///` + address + ": connection refused by " + address
	if status.Code(err) != codes.Unavailable || status.Convert(err).Message() != want {
		t.Errorf("without a management server calls fail with %v, want UNAVAILABLE and\n%s", err, want)
	}
	logged.Wait(t, time.Minute, "eds: stream to dns:///"+address+" failed: connection refused by "+address)

	listener, err = net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := adstest.Serve(listener, adstest.NewCatalogue(adstest.Cluster("shop", backend.address)).Serve)
	if _, err := who(timeoutContext(t, time.Minute), cc, grpc.WaitForReady(true)); err != nil {
		t.Errorf("wait-for-ready call: %v, want an answer", err)
	}
	earliest := time.Now().Add(time.Second) // gRPC does not reconnect immediately after a connection that lasted less than a second
	before := logged.Count("eds: stream to dns:///" + address + " failed")
	server.Stop()
	logged.Wait(t, time.Minute, "eds: stream to dns:///"+address+" ended: ")
	for latest := time.Now().Add(time.Minute); logged.Count("eds: stream to dns:///"+address+" failed") == before || time.Now().Before(earliest); {
		if _, err := who(timeoutContext(t, time.Minute), cc); err != nil || time.Now().After(latest) {
			t.Fatalf("while the management server is down and the failed reconnect is not logged yet: %v", err)
		}
	}

	backend.grpc.Stop()
	logged.Wait(t, time.Minute, "]: no priority can take calls: p0 region/zone: connection refused by "+backend.address+" (1 endpoint)")
	_, err = who(timeoutContext(t, time.Minute), cc)
	want = "no priority can take calls: p0 region/zone: connection refused by " + backend.address + " (1 endpoint"
	if got := status.Convert(err).Message(); status.Code(err) != codes.Unavailable || !strings.HasPrefix(got, want) {
		t.Errorf("without a backend calls fail with %v, want UNAVAILABLE and %s", err, want)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}
