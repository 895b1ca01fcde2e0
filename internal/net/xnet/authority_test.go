package xnet

import "testing"

func TestEncode(t *testing.T) {
	for name, want := range map[string]string{
		"checkout":          "checkout",
		"a.example.com:443": "a.example.com:443",
		"[2001:db8::1]:443": "[2001:db8::1]:443",
		"a b/c%":            "a%20b%2Fc%25",
		"prüfung":           "pr%C3%BCfung",
	} {
		if got := EncodeAuthority(name); got != want {
			t.Errorf("EncodeAuthority(%q) = %q, want %q", name, got, want)
		}
	}
}
