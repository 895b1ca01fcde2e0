package table

import (
	"bytes"
	"testing"
)

func TestColumnsAlign(t *testing.T) {
	got := Format([][]string{{"name", "share", "note"}, {"é", Percent(0.05, 1), ""}, {"longer", Percent(1, 1), "x"}, {"none", Percent(0, 1), ""}})
	want := "name    share    note\né         5.0 %\nlonger  100.0 %  x\nnone          -\n"
	if got != want {
		t.Errorf("formatted\n%swant\n%s", got, want)
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
