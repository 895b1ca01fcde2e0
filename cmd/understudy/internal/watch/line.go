package watch

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/printable"
)

// tone is what a piece of text is. It becomes a colour where there are colours.
type tone func(table.Painter, string) string

var (
	plain   tone = func(_ table.Painter, s string) string { return s }
	good    tone = table.Painter.Good
	bad     tone = table.Painter.Bad
	waiting tone = table.Painter.Waiting
	faint   tone = table.Painter.Faint
	strong  tone = table.Painter.Strong
)

// piece is text of one tone.
type piece struct {
	text string
	tone tone
}

// line is one line of what is shown.
type line []piece

// say returns a line of one piece.
func say(t tone, text string) line { return line(nil).add(t, text) }

// add returns the line with text at its end. What is not printable in it is escaped: no
// text can steer a terminal, wherever it came from.
func (l line) add(t tone, text string) line {
	return append(l, piece{printable.Text(text), t})
}

// fill returns the line with blanks at its end up to a column, and one at least.
func (l line) fill(column int) line {
	return append(l, piece{strings.Repeat(" ", max(1, column-l.cells())), plain})
}

// cells returns how many columns of a terminal the line takes.
func (l line) cells() (n int) {
	for _, p := range l {
		n += cells(p.text)
	}
	return n
}

// paint returns the line in colour, cut where it takes more than so many columns.
func (l line) paint(columns int, painter table.Painter) string {
	var b strings.Builder
	end := ""
	if l.cells() > columns {
		columns, end = columns-1, "…"
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
	if end == "" {
		return strings.TrimRight(b.String(), " ")
	}
	return b.String() + end
}

// cells returns how many columns of a terminal a text takes.
func cells(text string) (n int) {
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}

func cellsOf(r rune) int {
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

// cut returns the text, or as much of it as fits in so many columns with an ellipsis.
func cut(text string, columns int) string {
	text = printable.Text(text)
	if cells(text) <= columns {
		return text
	}
	head, _ := split(text, columns-1)
	return head + "…"
}

// split returns as much of a text as fits in so many columns, and the rest.
func split(text string, columns int) (head, rest string) {
	for i, r := range text {
		if columns -= cellsOf(r); columns < 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// wrap returns a text as lines of so many columns, broken between words where it can be;
// all but the first begin with an indent. Beyond the last line that it may have it is cut.
func wrap(text string, columns, most int, indent string) (lines []string) {
	text = printable.Text(text)
	for len(lines)+1 < most && cells(text) > columns {
		head, rest := split(text, columns)
		if blank := strings.LastIndexByte(head, ' '); blank > len(indent) && rest[0] != ' ' {
			head, rest = head[:blank], head[blank:]+rest
		}
		if head == "" { // a terminal narrower than a character
			_, size := utf8.DecodeRuneInString(text)
			head, rest = text[:size], text[size:]
		}
		lines = append(lines, head)
		text = indent + strings.TrimLeft(rest, " ")
	}
	return append(lines, cut(text, max(1, columns)))
}
