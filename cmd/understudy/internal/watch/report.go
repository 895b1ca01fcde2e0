package watch

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/printable"
)

type reporter interface {
	// report is called after each fetch, with the events since the last call.
	report(*view, []Event) error
}

const (
	plainColumns = 80
	plainRows    = 60
)

// lines is a reporter for output that is not a terminal. It prints a line for each event. When the
// priority in use changes, it also prints the tree.
type lines struct{ out io.Writer }

func (l lines) report(v *view, events []Event) error {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s ", e.Time.Local().Format("15:04:05.000"))
		if e.Target != "" {
			fmt.Fprintf(&b, "%s: ", e.Target)
		}
		fmt.Fprintln(&b, printable.Text(e.said()))
		if e.shown == nil {
			continue
		}
		for _, l := range v.tree(e) {
			fmt.Fprintln(&b, l.paint(plainColumns, table.Painter(false)))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(l.out, b.String())
	return err
}

func (v *view) tree(e Event) []line {
	for i, d := range details {
		p := picture{page: v.page, columns: plainColumns, detail: d}
		if p.tree(e.shown); len(p.lines) <= plainRows || i == len(details)-1 {
			return p.lines
		}
	}
	return nil
}

type objects struct{ out io.Writer }

func (o objects) report(_ *view, events []Event) error {
	for _, e := range events {
		encoded, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if _, err := o.out.Write(append(printable.JSON(encoded), '\n')); err != nil {
			return err
		}
	}
	return nil
}
