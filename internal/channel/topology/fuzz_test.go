package topology

import (
	"net"
	"strings"
	"testing"
)

// FuzzAddress checks that each address is either refused with one short line, or has a canonical
// form that does not change when it is canonicalized again.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"10.0.0.1:443", "[2001:DB8:0:0::1]:1", "a.test.:80", "unix:/run/x", "unix:", "a", ":1", "a:0", "a:65536", "[fe80::1%eth0]:1", "1.2.3:4", "01.2.3.4:5", "a..b:1", "é.test:1",
		"a b:1", "[::ffff:10.0.0.1]:1", strings.Repeat("l", 64) + ":1", strings.Repeat("1.", 500) + ":1", "[" + strings.Repeat("::", 500) + "]:1", strings.Repeat("x/", 500) + ":1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		canonical, problem := CanonicalAddress(address)
		if (canonical == "") != (problem != "") || len(problem) > 600 || strings.ContainsAny(problem, "\n\r\x00\x1b") {
			t.Errorf("%q becomes %q, %q", address, canonical, problem)
		}
		if problem != "" {
			return
		}
		if canonicalAgain, problem := CanonicalAddress(canonical); canonicalAgain != canonical {
			t.Errorf("%q becomes %q, and that %q, %q", address, canonical, canonicalAgain, problem)
		}
		if _, _, err := net.SplitHostPort(canonical); err != nil && !strings.HasPrefix(canonical, "unix:") {
			t.Errorf("%q becomes %q: %v", address, canonical, err)
		}
	})
}
