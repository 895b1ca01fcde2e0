package adsclient

import (
	"testing"
	"testing/synctest"
)

// A subscription to a name that is not valid UTF-8 must fail, and must not affect other
// subscriptions on the stream.
func TestInvalidUTF8Name(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startManager(t, serveEndpoints(1))
		bad, _ := m.watch("a\xff")
		a, _ := m.watch("a")
		expect(t, "a", a.take(), "a:1")
		expect(t, "bad", bad.take(), `eds: no endpoints of cluster "a\xff" from passthrough:///TestInvalidUTF8Name: its name is not UTF-8`)
		if got := m.server.Streams(); got != 1 {
			t.Errorf("the server saw %d streams, want one", got)
		}
	})
}
