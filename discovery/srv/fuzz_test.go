package srv_test

import (
	"testing"

	"github.com/understudy-lb/understudy/discovery/srv"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func FuzzTarget(f *testing.F) {
	for _, seed := range []string{
		"srv:///shop.test", "srv://192.0.2.53:53/_http._tcp.a.b.?verify=record", "srv://[::1]/a?refresh=1s", "srv:x", "srv:///_a._b.c%2e",
		"srv://:53/a", "srv:///a:1", "srv:///a..b", "srv:///a?dns=tcp&removeAfter=3&authority=b", "srv:///a?verify=x", "srv:///a/b#c", "?%0A0",
	} {
		f.Add(seed)
	}
	b := given.Builder(srv.Scheme)
	f.Fuzz(func(t *testing.T, text string) { given.CheckTarget(t, b, text) })
}
