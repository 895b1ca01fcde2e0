package given

import (
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/options"
)

// CheckTarget is for fuzz tests of a builder. Whatever the target, there must be no panic. Errors
// must be a single short line without passwords or tokens. If the target is accepted, its authority
// must consist of printable ASCII characters.
func CheckTarget(t *testing.T, b options.Builder, text string) {
	t.Helper()
	const secret, maxErrorLength = "hunter2-hunter2", 2000
	u, err := url.Parse(text)
	if err != nil {
		return
	}
	check := func() error {
		err := b.Check(resolver.Target{URL: *u}, false)
		if err != nil && (strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || len(err.Error()) > maxErrorLength) {
			t.Errorf("error is not a short line: %.3000q", err)
		}
		return err
	}
	if check() == nil {
		for _, c := range []byte(b.OverrideAuthority(resolver.Target{URL: *u})) {
			if c <= ' ' || c >= 0x7f {
				t.Errorf("the authority of %q has %q", text, c)
			}
		}
	}
	if strings.Contains(text, secret) {
		return
	}
	u.User, u.RawQuery = url.UserPassword("me", secret), "token="+secret
	if err := check(); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("%s: error %v, want one without the password and the token", u, err)
	}
}
