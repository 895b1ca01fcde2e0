package understudy

import (
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/config/options"
	accept "github.com/understudy-lb/understudy/internal/config/target"
)

func FuzzTarget(f *testing.F) {
	for _, scheme := range options.Schemes() {
		f.Add(scheme + ":///a.b:1?failoverTimeout=3s")
		f.Add("failover:///a:1," + scheme + ":%2F%2Fh:1%2Fa.b%3Frefresh=2s%26authority=x?zone=z&prefer=zone")
		f.Add(scheme + "://h:1/a.b?ramp=2")
	}
	for _, seed := range []string{"a:1,b:2", "a:1?endpointPolicy=pick_first", "dns:///a,unix:/b,passthrough:///c", "xds:///a", "a,failover:%2F%2F%2Fb%2Cc", ":", "", "%", "a?b", "é,\n"} {
		f.Add(seed)
	}
	f.Add("a:1" + strings.Repeat(`"`, 2000) + "\x00")
	for _, seed := range []string{"a,b:2,", "[::1%lo]:1,b", "unix:/a,dns:b?ramp=1s", "srv:///a,srv:///b", "failover:///a:1?refresh=5s,b:2", "/a?b", "a:99999", "a@b:1/c"} {
		f.Add(seed)
	}
	builders := options.Builders(Options{}.program())
	f.Fuzz(func(t *testing.T, target string) {
		if _, err := accept.Accept(builders, target, false); err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || len(err.Error()) > 3000 {
				t.Errorf("error is not a short line: %.4000q", err)
			}
			_, advice, found := strings.Cut(err.Error(), "; write ")
			if _, err := accept.Accept(builders, advice, false); found && err != nil && !strings.HasPrefix(advice, "import ") && !strings.Contains(target, "write") {
				t.Errorf("%q: the advice is %q: %v", target, advice, err)
			}
		}
		authority, _, err := join.Settings(target)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || len(err.Error()) > 3000 {
				t.Errorf("error is not a short line: %.4000q", err)
			}
			return
		}
		for _, c := range []byte(authority) {
			if c <= ' ' || c >= 0x7f {
				t.Errorf("the authority of %q has %q", target, c)
			}
		}
	})
}
