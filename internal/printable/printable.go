// Package printable makes text from outside safe to look at. A name in a file or from
// a server may hold control characters, which steer a terminal, and characters that
// reverse or hide what stands beside them.
package printable

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns s with every character that is not printable, in the sense of
// strconv.IsPrint, written as Go writes it between quotes. So a line stays one line.
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

// Line returns s as Text does, cut after about most bytes: at the end of a character, and
// with the number of bytes that s has.
func Line(s string, most int) string {
	if len(s) <= most {
		return Text(s)
	}
	kept := most
	for kept > 0 && !utf8.RuneStart(s[kept]) {
		kept--
	}
	return Text(s[:kept]) + "… (" + strconv.Itoa(len(s)) + " bytes)"
}

// Duration returns d as people read it: "52 ms", "4.2 s", "12 s", "5m3s".
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

// JSON returns encoded, which is JSON, with every character that is not printable
// written as \uXXXX. Outside of its strings JSON has none but white space, which is
// left alone: the value is the same.
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

// isPrint returns whether r, decoded from size bytes, is printable. A byte that is not
// UTF-8 decodes to a RuneError of size 1.
func isPrint(r rune, size int) bool {
	return strconv.IsPrint(r) && (r != utf8.RuneError || size > 1)
}

// Count returns a number with its noun: "1 priority", "2 priorities".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
