package watch

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/debug"
	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

func TestWatchTarget(t *testing.T) {
	called := make(chan bool, 100_000)
	primary := newBackend(t)
	secondary := newBackend(t, notifyCalls(called))
	w := startWatch(t, Options{Target: primary.address + "," + secondary.address, Output: "json", Rate: 50})
	e := w.awaitEvent("status", "Calls go to p0 "+primary.address)
	if e.State != "READY" || e.InUse != "p0 "+primary.address || e.Tree == nil || e.Target != "failover:///"+primary.address+","+secondary.address {
		t.Errorf("the event is %+v", e)
	}
	primary.server.Stop()
	if e := w.awaitEvent("event", "failover from"); !strings.Contains(e.Text, "to p1 "+secondary.address) {
		t.Errorf("the failover is %q", e.Text)
	}
	e = w.awaitEvent("status", "Calls go to p1 "+secondary.address)
	if len(e.Why) != 1 || !strings.HasPrefix(e.Why[0], "p0 "+primary.address+": ") {
		t.Errorf("p0 is not used because of %q", e.Why)
	}
	for range 5 {
		<-called
	}
	secondary.server.Stop()
	w.awaitEvent("status", "No priority can take calls")
	// The watch reports when calls begin to fail. They may have begun to fail when the first
	// backend was stopped.
	if e := w.findEvent("calls", "calls fail: UNAVAILABLE: "); e.Calls == nil || e.Calls.Failed == 0 {
		t.Errorf("the calls are %+v when they begin to fail", e.Calls)
	}
	w.quit()
	if e := w.awaitEvent("calls", " were answered and "); e.Calls == nil || e.Calls.Failed == 0 || e.Calls.Answered == 0 || e.Calls.Sent < e.Calls.Answered+e.Calls.Failed {
		t.Errorf("the calls are %+v in the end", e.Calls)
	}
	if err := w.end(); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "TRANSIENT_FAILURE") {
		t.Errorf("the watch ended with %v, want %v", err, ErrUnavailable)
	}
}

// Run returns no error if calls succeed at the end. Calls in flight do not count as failed.
func TestWatchSucceeds(t *testing.T) {
	called := make(chan bool, 1000)
	b := newBackend(t, notifyCalls(called))
	w := startWatch(t, Options{Target: b.address, Output: "lines", Rate: 100})
	w.await("Calls go to p0 " + b.address)
	for range 5 {
		<-called
	}
	w.quit()
	last := w.await(" calls, ")
	if !strings.Contains(last, "were answered and 0 failed") || strings.Contains(last, "of 0 calls") {
		t.Errorf("the last line is %q", last)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

func TestWatchPageAcrossRestart(t *testing.T) {
	b := newBackend(t)
	cc, err := Dial{}.dial("failover:///" + b.address + "?failoverTimeout=7s")
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	cc.Connect()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	program := &http.Server{Handler: debug.Handler()}
	go program.Serve(listener)
	w := startWatch(t, Options{Target: "http://" + address + "/debug/understudy/", Output: "json"})
	if e := w.awaitEvent("status", "Calls go to p0 "+b.address); !strings.HasSuffix(e.Target, "?failoverTimeout=7s") {
		t.Errorf("the event is %+v", e)
	}
	program.Close()
	w.awaitEvent("lost", "not reached, trying again: ")
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	program = &http.Server{Handler: debug.Handler()}
	defer program.Close()
	go program.Serve(listener)
	w.awaitEvent("back", "reached again, after ")
	b.server.Stop()
	w.awaitEvent("status", "No priority can take calls")
	program.Close()
	w.awaitEvent("lost", "not reached")
	if err := w.end(); !errors.As(err, new(Failure)) {
		t.Errorf("the watch of a page that is gone ended with %v, want a Failure", err)
	}
}

// The watch trusts only the given root certificates. Without TLS, it cannot connect to a server
// that requires TLS.
func TestTLS(t *testing.T) {
	authority := testcert.New(t)
	pair := authority.Pair("server", "127.0.0.1")
	creds, err := credentials.NewServerTLSFromFile(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	b := newBackend(t, grpc.Creds(creds))
	for name, test := range map[string]struct {
		tls  TLS
		want string
	}{
		"roots":        {TLS{CA: authority.File()}, "Calls go to"},
		"system roots": {TLS{Always: true}, "certificate signed by unknown authority"},
		"local":        {TLS{}, "No priority can take calls"},
		"insecure":     {TLS{Insecure: true}, "No priority can take calls"},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWatch(t, Options{Target: b.address, Output: "lines", Dial: Dial{TLS: test.tls}})
			w.await(test.want)
			w.end()
		})
	}
}

// The channel is READY, but each call fails with an error of the server.
func TestWatchOfServerThatFails(t *testing.T) {
	b := newBackend(t, grpc.UnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		return nil, status.Error(codes.Internal, "broken")
	}))
	w := startWatch(t, Options{Target: b.address, Output: "json", Rate: 100})
	w.awaitEvent("calls", "calls fail: INTERNAL: broken")
	if err := w.end(); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "the last with INTERNAL: broken") {
		t.Errorf("the watch ended with %v, want %v", err, ErrUnavailable)
	}
}
