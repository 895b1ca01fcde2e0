package watch

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

type reporter interface {
	// report shows the current view, and the events that have occurred since the previous call.
	report(*view, []Event) error
}

const (
	plainColumns = 80
	plainRows    = 60
)

// lineReporter is a reporter for output that is not a terminal. It prints a line for each event.
// When the status of a channel changes, it also prints the channel's tree.
type lineReporter struct{ out io.Writer }

func (l lineReporter) report(v *view, events []Event) error {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s ", e.Time.Local().Format("15:04:05.000"))
		if e.Target != "" {
			fmt.Fprintf(&b, "%s: ", e.Target)
		}
		fmt.Fprintln(&b, printable.Text(e.message()))
		if e.channel == nil {
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
	for i, d := range detailLevels {
		p := renderer{page: v.page, columns: plainColumns, detail: d}
		if p.tree(e.channel); len(p.lines) <= plainRows || i == len(detailLevels)-1 {
			return p.lines
		}
	}
	return nil
}

type jsonReporter struct{ out io.Writer }

func (o jsonReporter) report(_ *view, events []Event) error {
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
