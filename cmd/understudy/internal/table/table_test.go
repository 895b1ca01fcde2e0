package table

import (
	"bytes"
	"testing"
)

func TestColumnsAlign(t *testing.T) {
	table := Table{Columns: []Column{{Title: "name"}, {Title: "share", Align: Right}, {Title: "note"}}}
	table.Row("é", "5 %", "")
	table.Row("longer", "100 %", "x")
	var out bytes.Buffer
	table.Print(&out)
	want := "name    share  note\né         5 %\nlonger  100 %  x\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

func TestNoColourOutsideTerminal(t *testing.T) {
	if got := PainterFor(&bytes.Buffer{}).Bad("x"); got != "x" {
		t.Errorf("painted %q into a buffer", got)
	}
	if got := Painter(true).Good("x"); got != "\x1b[32mx\x1b[0m" {
		t.Errorf("painted %q", got)
	}
}
