package failover

import (
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// describeMechanisms returns the discovery mechanisms of a target, one per line, in the form "NAME
// -> TARGET AUTHORITY".
func describeMechanisms(t *testing.T, target string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	mechanisms, err := parseWith(newFakeBuilder(), u)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range mechanisms {
		resolved := "its own"
		if s, ok := p.Source.(source); ok {
			resolved = s.target.String()
		}
		lines = append(lines, p.Name+" -> "+resolved+" "+p.Authority)
	}
	return strings.Join(lines, "\n")
}

func parseWith(fakes *fakeBuilder, u *url.URL) ([]discovery.Mechanism, error) {
	l := listParser{Target: &discovery.Target{Target: resolver.Target{URL: *u}}, options: options{resolvers: map[string]resolver.Builder{fakes.Scheme(): fakes}}}
	return l.parse()
}

func TestEntries(t *testing.T) {
	for target, want := range map[string]string{
		"failover:///us.example.com:443,eu.example.com": "us.example.com:443 -> dns:///us.example.com:443 us.example.com:443\n" +
			"eu.example.com -> dns:///eu.example.com eu.example.com",
		"failover:///dns:///us.example.com:443": "dns:///us.example.com:443 -> dns:///us.example.com:443 us.example.com:443",
		"failover:///dns://192.0.2.53/us:443":   "dns://192.0.2.53/us:443 -> dns://192.0.2.53/us:443 us:443",
		"failover:///passthrough:///us:443":     "passthrough:///us:443 -> passthrough:///us:443 us:443",
		// As in grpc.NewClient, a registered scheme needs no slashes after its colon. An
		// unregistered scheme is treated as a host name.
		"failover:///dns:us:443":         "dns:us:443 -> dns:///us:443 us:443",
		"failover:///unix:/run/a.sock":   "unix:/run/a.sock -> unix:///run/a.sock localhost",
		"failover:///unix:///run/a.sock": "unix:///run/a.sock -> unix:///run/a.sock localhost",
		"failover:///ipv4:443":           "ipv4:443 -> dns:///ipv4:443 ipv4:443",
		"failover:///localhost:443":      "localhost:443 -> dns:///localhost:443 localhost:443",
		"failover:///:443":               ":443 -> dns:///:443 localhost:443",
		"failover:///[2001:db8::1]:443":  "[2001:db8::1]:443 -> dns:///[2001:db8::1]:443 [2001:db8::1]:443",
		"failover:///192.0.2.1:443":      "192.0.2.1:443 -> dns:///192.0.2.1:443 192.0.2.1:443",
		// A zone may be escaped as often as the user likes.
		"failover:///[fe80::1%25eth0]:443":       "[fe80::1%eth0]:443 -> dns:///[fe80::1%eth0]:443 [fe80::1%25eth0]:443",
		"failover:///[fe80::1%2525eth0]:443":     "[fe80::1%25eth0]:443 -> dns:///[fe80::1%eth0]:443 [fe80::1%25eth0]:443",
		"failover:///dns:///[fe80::1%25eb0]:443": "dns:///[fe80::1%eb0]:443 -> dns:///[fe80::1%eb0]:443 [fe80::1%25eb0]:443",
		"failover:/us:443":                       "us:443 -> dns:///us:443 us:443",
		// An entry is percent-decoded once, after the list has been split at its commas.
		"failover:///fake:///a%2Cb,c:1":     "fake:///a,b -> fake:///a,b a,b\nc:1 -> dns:///c:1 c:1",
		"failover:///fake:///a%3Fx=1":       "fake:///a?x=1 -> fake:///a a",
		"failover:///fake:///a%252Cb":       "fake:///a%2Cb -> fake:///a,b a,b",
		"failover:///fake%3A%2F%2F%2Fa":     "fake:///a -> fake:///a a",
		"failover:///fake:///a b,fake:///c": "fake:///a b -> fake:///a b a%20b\nfake:///c -> fake:///c c",
		// An entry may be a target of this module. A nested list is replaced by its entries.
		"failover:///eds://h:1/shop,srv:///x,a:1": "eds://h:1/shop -> its own shop\nsrv:///x -> its own x\na:1 -> dns:///a:1 a:1",
		"failover:///failover:///a:1%2Cb:1,file:///etc/x.yaml,b:1": "a:1 -> dns:///a:1 a:1\nb:1 -> dns:///b:1 b:1\n" +
			"file:///etc/x.yaml -> its own x\nb:1 (4) -> dns:///b:1 b:1",
		"failover:///failover:///failover:///a:1%252Cb:1%2Cc:1,d:1": "a:1 -> dns:///a:1 a:1\nb:1 -> dns:///b:1 b:1\nc:1 -> dns:///c:1 c:1\nd:1 -> dns:///d:1 d:1",
		// An entry may have parameters. The innermost authority applies.
		"failover:///a:1%3Fauthority=x,eds://h:1/shop%3Fauthority=y/z,b:1": "a:1?authority=x -> dns:///a:1 x\n" +
			"eds://h:1/shop?authority=y/z -> its own y%2Fz\nb:1 -> dns:///b:1 b:1",
		"failover:///failover:///a:1%253Fauthority=x%2Cb:1%3Fauthority=y": "a:1?authority=x -> dns:///a:1 x\nb:1 -> dns:///b:1 y",
		"failover:///a:1,a:1,a:1": "a:1 -> dns:///a:1 a:1\na:1 (2) -> dns:///a:1 a:1\na:1 (3) -> dns:///a:1 a:1",
	} {
		if got := describeMechanisms(t, target); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", target, got, want)
		}
	}
}

func TestInvalidTargets(t *testing.T) {
	for target, want := range map[string]string{
		"failover:///":                           `target has no entries; want the form failover:///us-east`,
		"failover:":                              `target has no entries`,
		"failover://":                            `target has no entries`,
		"failover://us/eu:443":                   `has a host: "us"; want the form failover:///us-east.example.com:443,eu-west.example.com:443, with three slashes`,
		"failover://us:443,eu:443":               `has a host: "us:443,eu:443"`,
		"failover://user@/eu:443":                `target has user information; want the form failover:///`,
		"failover:us:443,eu:443":                 `target "failover:us:443,eu:443" lacks the slashes after the scheme, want failover:///`,
		"failover:///us:443?x=1":                 `has the unknown parameter "x" (in a name, ? is written %3F), want one of authority, endpointPolicy, failoverTimeout, node, outlierDetection, overflow, perPriority, prefer, ramp, refresh, region, removeAfter, slowStart, subset, subsetSeed, warmStandby, zone`,
		"failover:///us:443#x":                   `target "failover:///us:443#x" has a fragment, want none (in a name, # is written %23)`,
		"failover:///us:443,":                    `entry 2, "": it is empty`,
		"failover:///us:443,,eu:443":             `entry 2, "": it is empty`,
		"failover:///us:443, eu:443":             `begins or ends with a space`,
		"failover:///us:443,%ff":                 `entry 2, "%ff": it is not valid UTF-8`,
		"failover:///us:443,a:b:c":               `entry 2, "a:b:c": want host:port, or [host]:port`,
		"failover:///us:443/eu:443":              `want host:port`,
		"failover:///us:":                        `want host:port, or [host]:port`,
		"failover:///us:65536":                   `it has port 65536, which is not from 1 to 65535; want a target such as us-east.example.com:443`,
		"failover:///dns:us:0":                   `it has port 0, which is not from 1 to 65535`,
		"failover:///us:99999999999999999999999": `it has port 99999999999999999999… (23 bytes), which is not from 1 to 65535`,
		"failover:///user@us:1":                  `want host:port, or [host]:port`,
		"failover:///us:1/eu":                    `want host:port, or [host]:port`,
		"failover:///unix:/a%23b":                `target "unix:/a#b" has a fragment, want none (in a name, # is written %23)`,
		"failover:///dns:///":                    `no host is given`,
		"failover:///ipv4:192.0.2.1:443":         `want host:port`,
		"failover:///%25zz":                      `entry 1, "%25zz": it is not a target; percent-encode its special characters`,
		"failover:///nosuch:///x":                `no resolver is registered for scheme "nosuch"; give one by failover.WithResolvers`,
		"failover:///xds:///x":                   `scheme "xds" is refused`,
		"failover:///XDS:x":                      `scheme "xds" is refused`,
		"failover:///file://x.yaml":              `entry 1, "file://x.yaml": target "file://x.yaml" names the host "x.yaml"`,
		"failover:///a:1,eds://h/x":              `entry 2, "eds://h/x": target "eds://h/x" has the server "h"`,
		"failover:///a:1,failover:%2F%2F%2Fb%2C": `entry 2, "failover:%2F%2F%2Fb%2C": entry 2, "": it is empty`,
		"failover:///a:1%3Fx=1":                  `target "dns:///a:1?x=1" has the unknown parameter "x" (in a name, ? is written %3F), want one of authority, refresh, removeAfter`,
		"failover:///a:1%3FslowStart=1s":         `has the parameter "slowStart", which is one of the whole channel: want it after the last entry`,
		"failover:///unix:/a%3Frefresh=1s":       `has the unknown parameter "refresh"`,
		"failover:///file:///a%3Fx=1":            `has the unknown parameter "x" (in a name, ? is written %3F), want one of authority, cluster, refresh, removeAfter`,
		"failover:///a:1?refresh=1ms":            `refresh: 1ms given, want a duration such as 10s, of 1s and more, or 0s for none`,
		"failover:///a:1%3Frefresh=-1s":          `refresh: -1s given`,
		"failover:///a:1?refresh=often":          `has an invalid parameter: refresh: "often" given, want a duration such as 10s`,
		"failover:///a:1?removeAfter=0":          `removeAfter: 0 given, want 1 and more`,
		"failover:///a:1?removeAfter=x":          `has an invalid parameter: removeAfter: "x" given, want a whole number such as 1`,
		"failover:///" + strings.Repeat("failover:///a%2Ca,", 32) + "a": `target has too many entries; want at most 64`,
		"failover:///" + strings.Repeat("a:1,", 9999) + "a:1":           `target has too many entries; want at most 64`,
		"failover:///" + strings.Repeat("é", 9999) + ":b:1":             `(` + "59998" + ` bytes)`,
	} {
		err := check(target)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check(%.60q) = %v\nwant an error with %q", target, err, want)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, "failover: ") || strings.Contains(text, "\n") || len(text) > 600 {
			t.Errorf("check(%.60q) = %v\nwant a line that begins with failover: and is not long", target, err)
		}
	}
}

func TestValidateWithOptions(t *testing.T) {
	const target = "failover:///fake:///a,us.example.com:443"
	if err := check(target); err == nil {
		t.Error("an unregistered scheme was accepted")
	}
	if err := check(target, given.Sources(WithResolvers(newFakeBuilder()))); err != nil {
		t.Errorf("with its resolver: %v", err)
	}
	err := check("failover:///a:1", given.Set("ServiceConfig", `{"loadBalancingConfig":[]}`))
	if err == nil || !strings.Contains(err.Error(), "loadBalancingConfig is set by the resolver") {
		t.Errorf("check = %v, want an error about the service config", err)
	}
	if err := check("failover:///" + strings.Repeat("a:1,", maxEntries-1) + "a:1"); err != nil {
		t.Errorf("with the maximum of entries: %v", err)
	}
}

func TestBuilderIsRegistered(t *testing.T) {
	if b := resolver.Get(Scheme); b == nil || b.Scheme() != Scheme {
		t.Errorf("resolver.Get(%q) = %v", Scheme, b)
	}
}

// FuzzParseTarget checks that a target does not cause a panic, that an error is one short line, and
// that discovery mechanisms have distinct names and valid authorities.
func FuzzParseTarget(f *testing.F) {
	longText := "l" + strings.Repeat("%89", 1000)
	for _, seed := range []string{
		targetForm, "failover:///unix:/a,dns:b,fake:///c%2Cd%3Fe", "failover:///a,a,a (2)", "failover://h/a?b#c",
		"failover:///%25%32%43", "failover:///[::1]:1,:2", "failover:///é,%ff", "failover:a",
		"failover:///a?" + longText + "=", "failover:///a?" + longText + "=1", "failover:///a?ramp=" + longText, longText[1:] + ":///a", "failover:///" + longText + ":///a",
	} {
		f.Add(seed)
	}
	fakes := newFakeBuilder()
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.Parse(target)
		if err != nil {
			return
		}
		err = check(target, given.Sources(WithResolvers(fakes)))
		if err != nil {
			if text := err.Error(); strings.Contains(text, "\n") || len(text) > 2000 {
				t.Errorf("error is not a short line: %q", text)
			}
			return
		}
		mechanisms, err := parseWith(fakes, u)
		if err != nil || len(mechanisms) == 0 || len(mechanisms) > maxEntries {
			t.Fatalf("valid, but %d entries, %v", len(mechanisms), err)
		}
		names := make(map[string]bool)
		for _, p := range mechanisms {
			if names[p.Name] {
				t.Errorf("name %q is given twice", p.Name)
			}
			names[p.Name] = true
			for _, c := range []byte(p.Authority) {
				if c <= ' ' || c >= 0x7f {
					t.Errorf("authority %q of entry %q needs encoding", p.Authority, p.Name)
				}
			}
		}
	})
}
