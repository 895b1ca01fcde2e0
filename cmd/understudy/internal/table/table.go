// Package table aligns tables and detects terminals.
package table

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"
)

var trailingSpaces = regexp.MustCompile(`(?m) +$`)

// Format aligns the columns of rows, with two spaces between them. The first row usually has the
// titles. There must be no tabs or newlines in the cells.
func Format(rows [][]string) string {
	var out strings.Builder
	aligned := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(aligned, strings.Join(row, "\t"))
	}
	_ = aligned.Flush()
	return trailingSpaces.ReplaceAllString(out.String(), "")
}

// Painter adds colors to text, unless it's false.
type Painter bool

// PainterFor returns a Painter for w. It uses colors if w is a terminal and the environment doesn't
// object (NO_COLOR, TERM=dumb).
func PainterFor(w io.Writer) Painter {
	return Painter(Terminal(w) != nil && os.Getenv("NO_COLOR") == "")
}

// Terminal returns stream as a file if it's a terminal that supports escape sequences, or else nil.
func Terminal(stream any) *os.File {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return f
}

func (p Painter) Good(s string) string { return p.paint("32", s) }

func (p Painter) Bad(s string) string { return p.paint("31", s) }

func (p Painter) paint(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Percent formats a share as a percentage with the given number of decimal places, or "-" for 0.
// The results are padded so that a column of them lines up.
func Percent(share float64, places int) string {
	text := fmt.Sprintf("%.*f %%", places, 100*share)
	if share == 0 {
		text = "-"
	}
	return fmt.Sprintf("%*s", len("100. %")+places, text)
}
