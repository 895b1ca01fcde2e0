package watch

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// tone adds the colour of a certain meaning, such as good or bad, to a text.
type tone func(table.Painter, string) string

var (
	tonePlain   tone = func(_ table.Painter, s string) string { return s }
	toneGood    tone = table.Painter.Good
	toneBad     tone = table.Painter.Bad
	toneWaiting tone = table.Painter.Waiting
	toneFaint   tone = table.Painter.Faint
	toneStrong  tone = table.Painter.Strong
)

type piece struct {
	text string
	tone tone
}

type line []piece

func newLine(t tone, text string) line { return line(nil).add(t, text) }

// add appends text to the line. It escapes unprintable characters, which could control a terminal.
func (l line) add(t tone, text string) line {
	return append(l, piece{printable.Text(text), t})
}

func (l line) padTo(column int) line {
	return append(l, piece{strings.Repeat(" ", max(1, column-l.cells())), tonePlain})
}

func (l line) cells() (n int) {
	for _, p := range l {
		n += cells(p.text)
	}
	return n
}

// paint returns the line with colours. It truncates a line that is wider than the given number of
// columns.
func (l line) paint(columns int, painter table.Painter) string {
	var b strings.Builder
	ellipsis := ""
	if l.cells() > columns {
		columns, ellipsis = columns-1, "…"
	}
	for _, p := range l {
		text, _ := split(p.text, columns)
		columns -= cells(text)
		if text != "" {
			b.WriteString(p.tone(painter, text))
		}
		if text != p.text {
			break
		}
	}
	if ellipsis == "" {
		return strings.TrimRight(b.String(), " ")
	}
	return b.String() + ellipsis
}

func cells(text string) (n int) {
	for _, r := range text {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

func truncate(text string, columns int) string {
	text = printable.Text(text)
	if cells(text) <= columns {
		return text
	}
	head, _ := split(text, columns-1)
	return head + "…"
}

func split(text string, columns int) (head, rest string) {
	for i, r := range text {
		if columns -= runeCells(r); columns < 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// wrap breaks a text into lines, between words where possible. All lines except the first begin
// with indent. A text that needs more than maxLines lines is truncated.
func wrap(text string, columns, maxLines int, indent string) (lines []string) {
	text = printable.Text(text)
	for len(lines)+1 < maxLines && cells(text) > columns {
		head, rest := split(text, columns)
		if blank := strings.LastIndexByte(head, ' '); blank > len(indent) && rest[0] != ' ' {
			head, rest = head[:blank], head[blank:]+rest
		}
		if head == "" { // the first character is wider than the terminal
			_, size := utf8.DecodeRuneInString(text)
			head, rest = text[:size], text[size:]
		}
		lines = append(lines, head)
		text = indent + strings.TrimLeft(rest, " ")
	}
	return append(lines, truncate(text, max(1, columns)))
}
