package printable

import (
	"net/url"
	"strings"
	"testing"
)

var targets = map[string]string{
	"dns:///shop.test:443":                                   "dns:///shop.test:443",
	"srv:///shop.test?refresh=30s&verify=record":             "srv:///shop.test?refresh=30s&verify=record",
	"unix:///run/a@1.sock":                                   "unix:///run/a@1.sock",
	"consul://user:hunter22@h:1/shop?dc=east&token=abcdef12": "consul://user:xxxxx@h:1/shop?dc=xxxxx&token=xxxxx",
	"consul://hunter22@h/shop":                               "consul://xxxxx@h/shop",
	"consul://h/shop?hunter22":                               "consul://h/shop?xxxxx",
	"consul://h/shop#hunter22":                               "consul://h/shop#xxxxx",
	"consul:///user:hunter22@h/shop":                         "consul:///user:xxxxx@h/shop",
	"consul:user:hunter22@h":                                 "consul:xxxxx@h",
	"failover:///a.test:443,b.test%3Frefresh=30s":            "failover:///a.test:443,b.test%3Frefresh=30s",
	"failover:///x:%2F%2Fu:hunter22@h%2Fs%3Ftoken=abcdef12,b.test:443?failoverTimeout=5s": "failover:///x:%2F%2Fu:xxxxx@h%2Fs%3Ftoken=xxxxx,b.test:443?failoverTimeout=5s",
	"failover:///x://u:hunter22@h/s,b.test:443":                                           "failover:///x:%2F%2Fu:xxxxx@h%2Fs,b.test:443",
	"failover:///failover:%2F%2F%2Fa.test%252Cx:%252F%252Fu:hunter22@h,b":                 "failover:///failover:%2F%2F%2Fa.test%2Cx:%252F%252Fu:xxxxx@h,b",
	"failover:///10.0.0.1:1%3Ftoken=hunter22,b":                                           "failover:///10.0.0.1:1%3Ftoken=xxxxx,b",
	"failover:///x:%2F%2Fu:hunt%25zzer22@h:p%2F,b":                                        "failover:///x:%2F%2Fxxxxx@h:p%2F,b",
	"failover:///u:hun%252Fter22@h,b":                                                     "failover:///u:xxxxx@h,b",
}

func TestHideTarget(t *testing.T) {
	for text, want := range targets {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		shown := HideTarget(*u)
		if got := shown.String(); got != want && strings.ReplaceAll(got, "%252C", "%2C") != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
		for _, form := range []string{shown.String(), shown.Path, shown.Opaque} {
			if strings.Contains(form, "hunter22") || strings.Contains(form, "abcdef12") {
				t.Errorf("%s: %s contains a secret", text, form)
			}
		}
		if again := HideTarget(shown); again.String() != shown.String() {
			t.Errorf("%s is shown as %s, and then as %s", text, shown.String(), again.String())
		}
	}
}

func TestHideIn(t *testing.T) {
	u, err := url.Parse("failover:///x:%2F%2Fu:p%2540ss%2520word@h%2Fs%3Ftoken=abcdef12%26dc=east,b.test:443")
	if err != nil {
		t.Fatal(err)
	}
	const text = `cannot ask http://u:p%40ss%20word@h/s?token=abcdef12 ("p@ss word", p%40ss+word) in east`
	const want = `cannot ask http://u:xxxxx@h/s?token=xxxxx ("xxxxx", xxxxx) in east`
	if got := HideIn(text, *u); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
