// Package printable makes text from files, servers and targets safe to show. It escapes unprintable
// characters, shortens errors, and hides passwords and tokens.
package printable

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Text escapes unprintable characters as in Go strings:
//
//	a<ESC>[31mb  ->  a\x1b[31mb
//	a<U+202E>b   ->  a\u202eb
func Text(s string) string {
	if isPrintable(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if isPrint(r, size) {
			b.WriteString(s[i : i+size])
		} else {
			quoted := strconv.Quote(s[i : i+size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// Line is like Text, but truncates s to about limit bytes. In that case, it also says how long s
// was.
func Line(s string, limit int) string {
	if len(s) <= limit {
		return Text(s)
	}
	kept := limit
	for kept > 0 && !utf8.RuneStart(s[kept]) {
		kept--
	}
	return Text(s[:kept]) + "… (" + strconv.Itoa(len(s)) + " bytes)"
}

// Duration formats d for people, e.g. "52 ms", "4.2 s", "12 s" or "5m3s".
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
	case d < 2*time.Minute:
		return strconv.FormatInt(int64(d.Round(time.Second)/time.Second), 10) + " s"
	}
	return d.Round(time.Second).String()
}

// JSON escapes unprintable characters in valid JSON as \uXXXX. White space stays the way it is.
func JSON(encoded []byte) []byte {
	if isPrintable(string(encoded)) {
		return encoded
	}
	var b []byte
	for i := 0; i < len(encoded); {
		r, size := utf8.DecodeRune(encoded[i:])
		switch {
		case isPrint(r, size), r == '\n', r == '\t', r == '\r':
			b = append(b, encoded[i:i+size]...)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			b = appendEscape(appendEscape(b, high), low)
		default:
			b = appendEscape(b, r)
		}
		i += size
	}
	return b
}

func appendEscape(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[r>>12&0xF], digits[r>>8&0xF], digits[r>>4&0xF], digits[r&0xF])
}

func isPrintable(s string) bool {
	for i, r := range s {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			_, size := utf8.DecodeRuneInString(s[i:])
			if !isPrint(r, size) {
				return false
			}
		}
	}
	return true
}

func isPrint(r rune, size int) bool {
	return strconv.IsPrint(r) && (r != utf8.RuneError || size > 1)
}

// Count formats a number with a noun, e.g. "1 priority" or "2 priorities".
func Count(n int, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return strconv.Itoa(n) + " " + plural
}
