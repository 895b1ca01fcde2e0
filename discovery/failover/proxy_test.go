package failover

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// withProxy returns an option that replaces the proxy of the environment. All connections go
// through the proxy, except connections to hosts with one of the suffixes in noProxy.
func withProxy(noProxy ...string) given.Option {
	return given.Sources(discovery.OwnOption(func(o *options) {
		o.proxy = func(r *http.Request) (*url.URL, error) {
			for _, suffix := range noProxy {
				if strings.HasSuffix(r.URL.Hostname(), suffix) {
					return nil, nil
				}
			}
			return &url.URL{Scheme: "http", Host: "proxy.example.com:3128"}, nil
		}
	}))
}

func routesOf(t *testing.T, target string, opts resolver.BuildOptions, options ...given.Option) string {
	t.Helper()
	var lines []string
	parse := func(target *discovery.Target) ([]discovery.Mechanism, error) {
		mechanisms, err := parseTarget(target)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range mechanisms {
			address, byProxy, err := p.Source.(source).route()
			switch {
			case err != nil:
				t.Fatal(err)
			case byProxy:
				lines = append(lines, "by proxy "+address)
			case address != "":
				lines = append(lines, "direct "+address)
			default:
				lines = append(lines, "here")
			}
		}
		return nil, errors.New("enough")
	}
	if _, err := given.NewBuilder(Scheme, parse, options...).Build(mustParseTarget(target), &channel{}, opts); err == nil {
		t.Fatal("want an error")
	}
	return strings.Join(lines, ", ")
}

func TestRoute(t *testing.T) {
	const us, eu, corp = "us.example.com", "eu.example.com:8443", "a.corp:443"
	withDialer := resolver.BuildOptions{Dialer: func(context.Context, string) (net.Conn, error) { return nil, nil }}
	for _, test := range []struct {
		name    string
		target  string
		noProxy []string
		option  given.Option
		opts    resolver.BuildOptions
		want    string
	}{
		{"both proxied", us + "," + eu, nil, nil, resolver.BuildOptions{}, "by proxy us.example.com:443, by proxy eu.example.com:8443"},
		{"a number", "192.0.2.1:1", nil, nil, resolver.BuildOptions{}, "by proxy 192.0.2.1:1"},
		{"looked up here", us + "," + eu, nil, given.Sources(WithLocalDNSResolution()), resolver.BuildOptions{}, "here, here"},
		{"a dialer instead", us + "," + eu, nil, nil, withDialer, "here, here"},
		{"one not proxied", corp + "," + us, []string{".corp"}, nil, resolver.BuildOptions{}, "direct a.corp:443, by proxy us.example.com:443"},
		{"one not proxied, here", corp + "," + us, []string{".corp"}, given.Sources(WithLocalDNSResolution()), resolver.BuildOptions{}, "direct a.corp:443, here"},
		{"none proxied", us + "," + eu, []string{".example.com"}, nil, resolver.BuildOptions{}, "here, here"},
		{"the last turns it off", us + "," + corp, []string{".corp"}, nil, resolver.BuildOptions{}, "here, here"},
		{"not DNS", "passthrough:///us:443," + us, nil, nil, resolver.BuildOptions{}, "here, by proxy us.example.com:443"},
	} {
		options := []given.Option{withProxy(test.noProxy...)}
		if test.option != nil {
			options = append(options, test.option)
		}
		got := routesOf(t, "failover:///"+test.target, test.opts, options...)
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestDirect(t *testing.T) {
	endpoints := []resolver.Endpoint{
		{Addresses: []resolver.Address{{Addr: "10.0.0.1:443"}}},
		{Addresses: []resolver.Address{{Addr: "192.0.2.1:443"}}},
	}
	for _, test := range []struct {
		noProxy []string
		want    string
	}{
		{[]string{".corp"}, "a.corp:443"},
		{[]string{".corp", "10.0.0.1"}, "a.corp:443"},
		{[]string{".corp", "10.0.0.1", "192.0.2.1"}, "10.0.0.1:443 192.0.2.1:443"},
	} {
		var o options
		given.NewBuilder(Scheme, func(t *discovery.Target) ([]discovery.Mechanism, error) {
			o = discovery.OwnOptions(t, o)
			return nil, nil
		}, withProxy(test.noProxy...)).OverrideAuthority(mustParseTarget("failover:///a.corp"))
		var got []string
		for _, e := range o.proxy.direct(discovery.Answer{Resolved: endpoints}, "a.corp:443").Resolved {
			got = append(got, e.Addresses[0].Addr)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("NO_PROXY %q: %q, want %s", test.noProxy, got, test.want)
		}
	}
}

func TestProxiedEntriesAnswerImmediately(t *testing.T) {
	cc := &channel{}
	r, err := given.Builder(Scheme, withProxy()).Build(mustParseTarget("failover:///us.example.com,eu.example.com:8443"), cc, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := "state us.example.com [us.example.com:443/us.example.com] eu.example.com:8443 [eu.example.com:8443/eu.example.com:8443]\n"
	if got := cc.take(); got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
}
