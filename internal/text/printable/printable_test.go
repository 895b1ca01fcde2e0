package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/quick"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for s, want := range map[string]string{
		"short":       "short",
		"a\x1b[31mb":  `a\x1b[31mb`,
		"0123456789":  "0123456789",
		"0123456789a": "0123456789… (11 bytes)",
		"012345678é!": "012345678… (12 bytes)",
	} {
		if got := Line(s, 10); got != want {
			t.Errorf("Line(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		52400 * time.Microsecond: "52 ms", 4230 * time.Millisecond: "4.2 s", 9 * time.Second: "9 s",
		12400 * time.Millisecond: "12 s", 119 * time.Second: "119 s", 303 * time.Second: "5m3s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestText(t *testing.T) {
	for given, want := range map[string]string{
		"":                       "",
		"us-east/a":              "us-east/a",
		"Zürich 東京":              "Zürich 東京",
		"a\x1b[31mb":             `a\x1b[31mb`,
		"a\nb\tc\r":              `a\nb\tc\r`,
		"a\u009b31m\x7f":         `a\u009b31m\x7f`,
		"a\u202eb\u2066c\u200dd": `a\u202eb\u2066c\u200dd`,
		"a\xffb":                 `a\xffb`,
		"\uFFFD":                 "\uFFFD", // the replacement character is printable
		`C:\new "x"`:             `C:\new "x"`,
		"\U000E0041":             `\U000e0041`,
	} {
		if got := Text(given); got != want {
			t.Errorf("Text(%q) = %s, want %s", given, got, want)
		}
	}
}

func TestResultIsPrintable(t *testing.T) {
	isControl := func(r rune) bool { return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }
	err := quick.Check(func(s string, raw []byte) bool {
		s += "\x1b\u202e\u2028\U000E0041" + string(raw)
		if text := Text(s); strings.ContainsFunc(text, isControl) || !utf8.ValidString(text) {
			t.Errorf("Text(%q) = %q", s, text)
			return false
		}
		encoded, err := json.MarshalIndent(map[string]string{"name": s}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		safe := string(JSON(encoded))
		var got, want map[string]string
		return !strings.ContainsFunc(strings.ReplaceAll(safe, "\n", ""), isControl) &&
			json.Unmarshal(encoded, &want) == nil && json.Unmarshal([]byte(safe), &got) == nil && got["name"] == want["name"]
	}, nil)
	if err != nil {
		t.Error(err)
	}
}
