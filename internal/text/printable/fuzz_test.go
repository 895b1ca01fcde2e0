package printable

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func isControl(r rune) bool { return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }

// FuzzText checks that results contain no characters that control a terminal, that printable text
// stays the same, and that Line limits the length.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"us-east/a", "Zürich 東京", "a\x1b[31mb\x9b\u202e\u2066\x00\r\n", "a\xffb\uFFFD", "\U000E0041\U0001F600", strings.Repeat("é", 60), "a\u2028b\u00ad\ufeff",
		`rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.1:443: connect: connection refused"`,
		`connection error: desc = "error reading server preface: read tcp 10.0.0.9:5->10.0.0.1:443: i/o timeout"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		const maxLength = 40
		line := Line(s, maxLength)
		for _, shown := range []string{Text(s), Text(Brief(s)), line, Quote(s)} {
			if strings.ContainsFunc(shown, isControl) || !utf8.ValidString(shown) {
				t.Errorf("%q is shown as %q", s, shown)
			}
		}
		if twice := Text(Text(s)); twice != Text(s) {
			t.Errorf("%q is shown as %q, and that as %q", s, Text(s), twice)
		}
		if utf8.ValidString(s) && !strings.ContainsFunc(s, isControl) && strings.ToValidUTF8(Text(s), "") != s && !strings.ContainsFunc(s, unicode.IsSpace) {
			t.Errorf("%q is shown as %q", s, Text(s))
		}
		if limit := 10*maxLength + 30; len(line) > limit { // an escape sequence has up to ten bytes
			t.Errorf("%d bytes are shown as %d", len(s), len(line))
		}
		encoded, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		safe := JSON(encoded)
		var got, want string
		if err := json.Unmarshal(safe, &got); err != nil || json.Unmarshal(encoded, &want) != nil || got != want || strings.ContainsFunc(string(safe), isControl) {
			t.Errorf("%s is shown as %s, which means %q, %v", encoded, safe, got, err)
		}
	})
}

// FuzzSecrets checks that passwords and tokens are hidden in targets of any form, and in errors
// that contain such a target.
func FuzzSecrets(f *testing.F) {
	for _, seed := range []string{"host:1/shop?dc=a", "h,dns:b", "%zz", "@", "a@b/c@d:e@f", "[::1", "/#x", "?a=b&c", "a%2Cb%40c", "\n", "é"} {
		f.Add("consul", seed)
		f.Add("dns", seed)
	}
	const secret = "hunter2-hunter2"
	f.Fuzz(func(t *testing.T, scheme, rest string) {
		if strings.Contains(scheme+rest, secret) || strings.HasPrefix(scheme, "unix") || scheme != url.PathEscape(scheme) || strings.ContainsAny(scheme, ":/,") {
			return
		}
		for _, target := range []string{
			scheme + "://me:" + secret + "@" + rest,
			scheme + ":///a?token=" + secret + "&" + rest,
			"failover:///b:1," + url.PathEscape(scheme+"://me:"+secret+"@"+rest),
		} {
			shown := HideText(target)
			if strings.Contains(shown, secret) {
				t.Errorf("%q is shown as %q", target, shown)
			}
			if twice := HideText(shown); strings.Contains(twice, secret) || len(twice) > len(shown)+len(placeholder) {
				t.Errorf("%q is shown as %q, and that as %q", target, shown, twice)
			}
			u, err := url.Parse(target)
			if err != nil {
				continue
			}
			err = fmt.Errorf("cannot use %s", u)
			if password, ok := u.User.Password(); ok {
				err = fmt.Errorf("%w with the password %s", err, password)
			}
			if text := HideIn(err.Error(), *u); strings.Contains(text, secret) {
				t.Errorf("the error %q is shown as %q", err, text)
			}
		}
	})
}
