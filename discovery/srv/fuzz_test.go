package srv_test

import (
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery/srv"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// FuzzTarget checks that no target causes a panic, that each error is one short line, and that an
// accepted target has a valid authority.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"srv:///shop.test", "srv://192.0.2.53:53/_http._tcp.a.b.?verify=record", "srv://[::1]/a?refresh=1s", "srv:x", "srv:///_a._b.c%2e"} {
		f.Add(seed)
	}
	f.Add("?%0A0")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		b := given.Builder(srv.Scheme)
		if err := b.Check(resolver.Target{URL: *u}, false); err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error is not a line: %q", err)
			}
			return
		}
		for _, c := range []byte(b.OverrideAuthority(resolver.Target{URL: *u})) {
			if c <= ' ' || c >= 0x7f {
				t.Errorf("authority of %q has %q", text, c)
			}
		}
	})
}
