package failover

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"
)

// behind returns a builder with DNS parts whose names and numbers, except those that
// end in one of noProxy, are reached through a proxy.
func behind(noProxy []string, opts ...Option) *builder {
	b := NewBuilder(opts...).(*builder)
	b.proxy = func(r *http.Request) (*url.URL, error) {
		for _, suffix := range noProxy {
			if strings.HasSuffix(r.URL.Hostname(), suffix) {
				return nil, nil
			}
		}
		return &url.URL{Scheme: "http", Host: "proxy.example.com:3128"}, nil
	}
	return b
}

// routed describes what becomes of each part of target.
func routed(t *testing.T, b *builder, target string, opts resolver.BuildOptions) string {
	t.Helper()
	parts, err := b.parse(parsed(target).URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.route(parsed(target), parts, opts); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range parts {
		address, byProxy := p.builder.(unresolved)
		switch {
		case byProxy:
			lines = append(lines, "by proxy "+string(address))
		case p.direct != "":
			lines = append(lines, "direct "+p.direct)
		default:
			lines = append(lines, "here")
		}
	}
	return strings.Join(lines, ", ")
}

func TestWhoLooksUpANameBehindAProxy(t *testing.T) {
	const us, eu, corp = "us.example.com", "eu.example.com:8443", "a.corp:443"
	dialer := resolver.BuildOptions{Dialer: func(context.Context, string) (net.Conn, error) { return nil, nil }}
	for _, test := range []struct {
		what    string
		target  string
		noProxy []string
		option  Option
		opts    resolver.BuildOptions
		want    string
	}{
		{"both proxied", us + "," + eu, nil, nil, resolver.BuildOptions{}, "by proxy us.example.com:443, by proxy eu.example.com:8443"},
		{"a number", "192.0.2.1:1", nil, nil, resolver.BuildOptions{}, "by proxy 192.0.2.1:1"},
		{"looked up here", us + "," + eu, nil, WithLocalDNSResolution(), resolver.BuildOptions{}, "here, here"},
		{"a dialer instead", us + "," + eu, nil, nil, dialer, "here, here"},
		{"one not proxied", corp + "," + us, []string{".corp"}, nil, resolver.BuildOptions{}, "direct a.corp:443, by proxy us.example.com:443"},
		{"one not proxied, here", corp + "," + us, []string{".corp"}, WithLocalDNSResolution(), resolver.BuildOptions{}, "direct a.corp:443, here"},
		{"none proxied", us + "," + eu, []string{".example.com"}, nil, resolver.BuildOptions{}, "here, here"},
		{"the last turns it off", us + "," + corp, []string{".corp"}, nil, resolver.BuildOptions{}, "here, here"},
		{"not DNS", "passthrough:///us:443," + us, nil, nil, resolver.BuildOptions{}, "here, by proxy us.example.com:443"},
	} {
		var options []Option
		if test.option != nil {
			options = append(options, test.option)
		}
		got := routed(t, behind(test.noProxy, options...), "failover:///"+test.target, test.opts)
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.what, got, test.want)
		}
	}
}

func TestADirectPartIsDialledByNameWhereItsNumbersWouldBeProxied(t *testing.T) {
	endpoints := []resolver.Endpoint{
		{Addresses: []resolver.Address{{Addr: "10.0.0.1:443"}}},
		{Addresses: []resolver.Address{{Addr: "192.0.2.1:443"}}},
	}
	direct := part{direct: "a.corp:443"}
	for _, test := range []struct {
		part    part
		noProxy []string
		want    string
	}{
		{direct, []string{".corp"}, "a.corp:443"},
		{direct, []string{".corp", "10.0.0.1"}, "a.corp:443"},
		{direct, []string{".corp", "10.0.0.1", "192.0.2.1"}, "10.0.0.1:443 192.0.2.1:443"},
		{part{}, nil, "10.0.0.1:443 192.0.2.1:443"},
	} {
		var got []string
		for _, e := range behind(test.noProxy).proxy.keepDirect(test.part, endpoints) {
			got = append(got, e.Addresses[0].Addr)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("direct %q, NO_PROXY %q: %q, want %s", test.part.direct, test.noProxy, got, test.want)
		}
	}
}

func TestUnresolvedPartsAnswerAtOnce(t *testing.T) {
	cc := &channel{}
	r, err := behind(nil).Build(parsed("failover:///us.example.com,eu.example.com:8443"), cc, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := "state us.example.com [us.example.com:443/us.example.com] eu.example.com:8443 [eu.example.com:8443/eu.example.com:8443]\n"
	if got := cc.take(); got != want {
		t.Errorf("channel saw %q, want %q", got, want)
	}
}
