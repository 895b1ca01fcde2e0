package watch

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// If the channel's management server is unreachable or its file is missing, the watch reports this
// once. It also reports the recovery.
func TestWatchReportsStaleSource(t *testing.T) {
	b := newBackend(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	catalogue := adstest.NewCatalogue(adstest.Cluster("shop", b.address))
	server := adstest.Serve(listener, catalogue.Serve)
	defer func() { server.Stop() }()
	host, port, _ := net.SplitHostPort(b.address)
	path := filepath.Join(t.TempDir(), "shop.yaml")
	content := fmt.Appendf(nil, "endpoints:\n- lb_endpoints:\n  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", host, port)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		target, wantError          string
		breakSource, restoreSource func() error
	}{
		"eds": {
			"eds://" + address + "/shop", "management server dns:///" + address + " cannot be reached: ",
			func() error { server.Stop(); return nil },
			func() error {
				l, err := net.Listen("tcp", address)
				if err == nil {
					server = adstest.Serve(l, catalogue.Serve)
				}
				return err
			},
		},
		"file": {
			"file://" + path, path + ": no such file or directory",
			func() error { return os.Remove(path) },
			func() error { return os.WriteFile(path, content, 0o600) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWatch(t, Options{Target: test.target, Output: "json"})
			if e := w.awaitEvent("status", "Calls go to p0"); len(e.Sources) != 1 || e.Sources[0].Stale() {
				t.Errorf("the event is %+v", e)
			}
			if err := test.breakSource(); err != nil {
				t.Fatal(err)
			}
			e := w.awaitEvent("status", "Calls go to p0")
			if len(e.Sources) != 1 || !e.Sources[0].Stale() || e.Sources[0].ErrorSince == nil || e.Sources[0].Version == "" || !strings.HasPrefix(e.Sources[0].Error, test.wantError) {
				t.Errorf("the event is %+v, want its source to fail because of %s", e, test.wantError)
			}
			if err := test.restoreSource(); err != nil {
				t.Fatal(err)
			}
			w.awaitEvent("event", "recovered after ")
			if e := w.awaitEvent("status", "Calls go to p0"); len(e.Sources) != 1 || e.Sources[0].Stale() {
				t.Errorf("the event is %+v", e)
			}
			if err := w.end(); err != nil {
				t.Error(err)
			}
		})
	}
}
