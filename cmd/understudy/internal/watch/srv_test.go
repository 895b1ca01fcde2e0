package watch

import (
	"net"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/testing/dnstest"
)

// For a target with SRV records, the watch reports the priorities, a failover, and the failure of
// the DNS server. During this failure, the channel still uses the last answer.
func TestWatchSRVTarget(t *testing.T) {
	primary, secondary := newBackend(t), newBackend(t)
	dns := dnstest.Start()
	t.Cleanup(dns.Stop)
	const name = "_grpc._tcp.shop.test"
	portOf := func(b *backend) string {
		_, port, _ := net.SplitHostPort(b.address)
		return port
	}
	dns.Set("a.test", "A", "127.0.0.1")
	dns.Set("b.test", "A", "127.0.0.1")
	dns.Set(name, "SRV", "1 1 "+portOf(primary)+" a.test.", "2 1 "+portOf(secondary)+" b.test.")
	w := startWatch(t, Options{Target: "srv://" + dns.Address() + "/shop.test?refresh=2s", Output: "json"})
	e := w.awaitEvent("status", "Calls go to p0")
	if len(e.Sources) != 1 || e.Sources[0].State != "answered" || e.Sources[0].Priorities != 2 || e.Sources[0].Endpoints != 2 || e.Sources[0].Stale() {
		t.Errorf("the event is %+v", e)
	}
	const serverFailure = 2
	dns.SetAnswer(name, "SRV", dnstest.Answer{Code: serverFailure})
	primary.server.Stop() // when the connection is lost, the channel looks up the name again
	if e := w.awaitEvent("status", "Calls go to p1"); e.State != "READY" || len(e.Why) != 1 || !strings.HasPrefix(e.Why[0], "p0 SRV priority 1: ") {
		t.Errorf("the event is %+v", e)
	}
	for e = w.awaitEvent("status", "Calls go to p1"); !e.Sources[0].Stale(); {
		e = w.awaitEvent("status", "Calls go to p1")
	}
	if s := e.Sources[0]; s.ErrorSince == nil || s.Confirmed.After(*s.ErrorSince) || !strings.Contains(s.Error, name) {
		t.Errorf("the source is %+v, want it to have failed since it was last confirmed", s)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}
