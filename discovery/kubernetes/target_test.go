package kubernetes

import (
	"net/url"
	"testing"

	"google.golang.org/grpc/resolver"
)

func TestTargets(t *testing.T) {
	for target, want := range map[string]string{
		"kubernetes:///web":                         "web||/web",
		"k8s:///web.shop:grpc":                      "web|grpc|shop/web.shop",
		"kubernetes:///web.shop.svc.cluster.local:": "",
		"kubernetes:///web.shop.svc.cluster.local":  "web||shop/web.shop",
		"kubernetes://shop/web:80":                  "web|80|shop/web.shop",
		"kubernetes://web.shop:80/":                 "web|80|shop/web.shop",
		"kubernetes:///web,web-canary.shop:grpc":    "web,web-canary|grpc|shop/web.shop",
		"kubernetes:///web.a,other.b":               "",
		"kubernetes:///":                            "",
		"kubernetes:///web:70000":                   "",
		"kubernetes:///web.shop.example.com":        "",
		"kubernetes:///Web":                         "",
		"kubernetes:web":                            "",
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if q, authority, err := parse(resolver.Target{URL: *u}); err == nil {
			got = q.services + "|" + q.port + "|" + q.namespace + "/" + authority
		}
		if got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

func targetOf(t testing.TB, text string) resolver.Target {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return resolver.Target{URL: *u}
}
