package failover

import (
	"crypto/tls"
	"testing"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

func TestAuthorityOfFirstEntry(t *testing.T) {
	b := given.Builder(Scheme, given.Sources(WithResolvers(newFakeBuilder())))
	for text, want := range map[string]string{
		"failover:///us:443,eu:443":        "us:443",
		"failover:///:443,eu:443":          "localhost:443",
		"failover:///unix:/run/a,eu:443":   "localhost",
		"failover:///fake:///a%2Fb é,eu:1": "a%2Fb%20%C3%A9",
	} {
		if got := b.OverrideAuthority(mustParseTarget(text)); got != want {
			t.Errorf("authority of %s = %q, want %q", text, got, want)
		}
	}
	if got := b.OverrideAuthority(mustParseTarget("failover:///")); got == "" {
		t.Error("an invalid target has no authority")
	}
}

type bundle struct {
	credentials.Bundle
	creds credentials.TransportCredentials
}

func (b bundle) TransportCredentials() credentials.TransportCredentials { return b.creds }

func TestServerNames(t *testing.T) {
	unnamed, named := credentials.NewTLS(&tls.Config{}), credentials.NewTLS(&tls.Config{ServerName: "pinned"})
	for _, test := range []struct {
		name                        string
		opts                        resolver.BuildOptions
		update, resolverAuthorities string
	}{
		{"no credentials", resolver.BuildOptions{}, "state fake:a [1/a] fake:b [2/b]\n", "a b"},
		{"without a name", resolver.BuildOptions{DialCreds: unnamed, Authority: "a"}, "state fake:a [1/a] fake:b [2/b]\n", "a b"},
		{"with a name", resolver.BuildOptions{DialCreds: named, Authority: "pinned"}, "state fake:a [1] fake:b [2]\n", "pinned pinned"},
		{"empty bundle", resolver.BuildOptions{CredsBundle: bundle{}}, "state fake:a [1/a] fake:b [2/b]\n", "a b"},
		{"bundle without a name", resolver.BuildOptions{CredsBundle: bundle{creds: unnamed}}, "state fake:a [1/a] fake:b [2/b]\n", "a b"},
		{"bundle with a name", resolver.BuildOptions{CredsBundle: bundle{creds: named}}, "state fake:a [1] fake:b [2]\n", "a b"},
		{"WithAuthority", resolver.BuildOptions{DialCreds: unnamed, Authority: "given"}, "state fake:a [1/a] fake:b [2/b]\n", "given given"},
	} {
		f, cc := newFakeBuilder(), &channel{}
		r, err := given.Builder(Scheme, given.Sources(WithResolvers(f))).Build(target("a", "b"), cc, test.opts)
		if err != nil {
			t.Fatal(err)
		}
		f.resolvers["b"].answer("2")
		f.resolvers["a"].answer("1")
		if got := cc.take(); got != test.update {
			t.Errorf("%s: channel saw %q, want %q", test.name, got, test.update)
		}
		a, b := f.resolvers["a"].opts, f.resolvers["b"].opts
		if got := a.Authority + " " + b.Authority; got != test.resolverAuthorities {
			t.Errorf("%s: the mechanisms' authorities are %q, want %q", test.name, got, test.resolverAuthorities)
		}
		if !a.DisableServiceConfig || !b.DisableServiceConfig {
			t.Errorf("%s: the mechanisms' resolvers may send service configs", test.name)
		}
		r.Close()
	}
}
