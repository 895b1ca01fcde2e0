package watch

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/understudy-lb/understudy/debug"
	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

func TestATargetIsWatched(t *testing.T) {
	called := make(chan bool, 100_000)
	first := newBackend(t)
	second := newBackend(t, notifying(called))
	w := begin(t, Options{Target: first.address + "," + second.address, JSON: true, Rate: 50})
	e := w.awaitEvent(kindStatus, "Calls go to p0 "+first.address)
	if e.State != "READY" || e.InUse != "p0 "+first.address || e.Tree == nil || e.Target != "failover:///"+first.address+","+second.address {
		t.Errorf("the event is %+v", e)
	}
	first.server.Stop()
	if e := w.awaitEvent(kindEvent, "failover from"); !strings.Contains(e.Text, "to p1 "+second.address) {
		t.Errorf("the failover is %q", e.Text)
	}
	e = w.awaitEvent(kindStatus, "Calls go to p1 "+second.address)
	if len(e.Why) != 1 || !strings.HasPrefix(e.Why[0], "p0 "+first.address+": ") {
		t.Errorf("p0 is not used because of %q", e.Why)
	}
	for range 5 {
		<-called
	}
	second.server.Stop()
	w.awaitEvent(kindStatus, "No priority can take calls")
	// The watch reports when calls begin to fail. This may have happened when the first backend was
	// stopped.
	if e := w.everEvent(kindCalls, "calls fail: UNAVAILABLE: "); e.Calls == nil || e.Calls.Failed == 0 {
		t.Errorf("the calls are %+v when they begin to fail", e.Calls)
	}
	w.quit()
	if e := w.awaitEvent(kindCalls, " were answered and "); e.Calls == nil || e.Calls.Failed == 0 || e.Calls.Answered == 0 || e.Calls.Sent < e.Calls.Answered+e.Calls.Failed {
		t.Errorf("the calls are %+v in the end", e.Calls)
	}
	if err := w.end(); !errors.Is(err, ErrNotTaken) || !strings.Contains(err.Error(), "TRANSIENT_FAILURE") {
		t.Errorf("the watch ended with %v, want %v", err, ErrNotTaken)
	}
}

// Run returns no error if calls succeed at the end. Calls in flight do not count as failed.
func TestAWatchThatEndsWell(t *testing.T) {
	called := make(chan bool, 1000)
	b := newBackend(t, notifying(called))
	w := begin(t, Options{Target: b.address, Lines: true, Rate: 100})
	w.await("Calls go to p0 " + b.address)
	for range 5 {
		<-called
	}
	w.quit()
	last := w.await(" calls ")
	if !strings.Contains(last, "were answered and 0 failed") || strings.Contains(last, "of 0 calls") {
		t.Errorf("the last line is %q", last)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

func TestAPageIsWatchedAcrossARestart(t *testing.T) {
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
	w := begin(t, Options{Target: "http://" + address + "/debug/understudy/", JSON: true})
	if e := w.awaitEvent(kindStatus, "Calls go to p0 "+b.address); !strings.HasSuffix(e.Target, "?failoverTimeout=7s") {
		t.Errorf("the event is %+v", e)
	}
	program.Close()
	w.awaitEvent(kindLost, "not reached, trying again: ")
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	program = &http.Server{Handler: debug.Handler()}
	defer program.Close()
	go program.Serve(listener)
	w.awaitEvent(kindBack, "reached, after ")
	b.server.Stop()
	w.awaitEvent(kindStatus, "No priority can take calls")
	program.Close()
	w.awaitEvent(kindLost, "not reached")
	if err := w.end(); !errors.As(err, new(Failure)) {
		t.Errorf("the watch of a page that is gone ended with %v, want a Failure", err)
	}
}

// A TLS connection trusts only the given roots. A server without TLS is refused.
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
			w := begin(t, Options{Target: b.address, Lines: true, Dial: Dial{TLS: test.tls}})
			w.await(test.want)
			w.end()
		})
	}
}
