// Package table prints aligned tables, and detects terminals.
package table

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Align is the alignment of a column.
type Align int

// The alignments of a column.
const (
	Left Align = iota
	Right
)

// Column is one column.
type Column struct {
	Title string
	Align Align
}

// Table is a table with a row of titles. Its cells must not contain newlines.
type Table struct {
	Columns []Column
	rows    [][]string
}

// Row adds a row with a cell for each column.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Print writes the table to w with two spaces between columns.
func (t *Table) Print(w io.Writer) {
	titles := make([]string, len(t.Columns))
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = c.Title
	}
	rows := append([][]string{titles}, t.rows...)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if t.Columns[i].Align == Right {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// Painter adds colours to text if it is true, and returns the text unchanged otherwise.
type Painter bool

// PainterFor returns a Painter for w. It colours text if w is a terminal and the environment allows
// it (NO_COLOR, TERM=dumb).
func PainterFor(w io.Writer) Painter {
	return Painter(Terminal(w) != nil && os.Getenv("NO_COLOR") == "")
}

// Terminal returns stream as a file if it is a terminal that supports escape sequences, and nil
// otherwise.
func Terminal(stream any) *os.File {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return f
}

// Good returns s in green.
func (p Painter) Good(s string) string { return p.paint("32", s) }

// Bad returns s in red.
func (p Painter) Bad(s string) string { return p.paint("31", s) }

// Waiting returns s in yellow.
func (p Painter) Waiting(s string) string { return p.paint("33", s) }

// Strong returns s in bold.
func (p Painter) Strong(s string) string { return p.paint("1", s) }

// Faint returns s dimmed.
func (p Painter) Faint(s string) string { return p.paint("2", s) }

func (p Painter) paint(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Percent returns a share in percent with a number of decimal places, or "-" for 0.
func Percent(share float64, places int) string {
	if share == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f %%", places, 100*share)
}
