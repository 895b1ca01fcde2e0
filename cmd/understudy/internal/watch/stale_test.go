package watch

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If the channel's file is missing, the watch reports this once. It also reports the recovery.
func TestWatchReportsStaleSource(t *testing.T) {
	b := newBackend(t)
	host, port, _ := net.SplitHostPort(b.address)
	path := filepath.Join(t.TempDir(), "shop.yaml")
	content := fmt.Appendf(nil, "endpoints:\n- lb_endpoints:\n  - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", host, port)
	writeFile := func() {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeFile()
	w := startWatch(t, Options{Target: "file://" + path, Output: "json"})
	if e := w.awaitEvent("status", "Calls go to p0"); len(e.Sources) != 1 || e.Sources[0].Stale() {
		t.Errorf("the event is %+v", e)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	e := w.awaitEvent("status", "Calls go to p0")
	want := path + ": no such file or directory"
	if len(e.Sources) != 1 || !e.Sources[0].Stale() || e.Sources[0].ErrorSince == nil || e.Sources[0].Version == "" || !strings.HasPrefix(e.Sources[0].Error, want) {
		t.Errorf("the event is %+v, want its source to fail because of %s", e, want)
	}
	writeFile()
	w.awaitEvent("event", "recovered after ")
	if e := w.awaitEvent("status", "Calls go to p0"); len(e.Sources) != 1 || e.Sources[0].Stale() {
		t.Errorf("the event is %+v", e)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}
