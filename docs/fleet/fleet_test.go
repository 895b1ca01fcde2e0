package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is a fleet of 20 endpoints with weights from 1 to 10.
var small = fleet{clients: 2000, endpoints: 20, maxWeight: 10, calls: 22}

func TestSimulate(t *testing.T) {
	results := small.simulate()
	spec, random, lottery := results[0], results[1], results[2]
	// All clients call the first of the heaviest endpoints: weight 10 of 110.
	if got, want := spec.overload[0], 11.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("spec, 1 call: overload %v, want %v", got, want)
	}
	if got, want := spec.busy[0], 1.0/20; got != want {
		t.Errorf("spec, 1 call: %v of the endpoints are busy, want %v", got, want)
	}
	for _, r := range []result{random, lottery} {
		if got := r.overload[0]; got < 1 || got > 1.5 {
			t.Errorf("%s, 1 call: overload %v, want little more than 1", r.name, got)
		}
		if got := r.busy[0]; got != 1 {
			t.Errorf("%s, 1 call: %v of the endpoints are busy, want all", r.name, got)
		}
	}
	if r, l := random.worst[21], lottery.worst[21]; r >= l || r < 1 {
		t.Errorf("22 calls: random start has %v, random picks have %v; want less", r, l)
	}
}

func TestSummarise(t *testing.T) {
	f := fleet{endpoints: 3, maxWeight: 3} // weights 1, 2, 3
	overload, worst, busy := f.summarise([]int{5, 0, 7}, 12)
	if math.Abs(overload-7.0/6) > 1e-9 || worst != 2.5 || busy != 2.0/3 {
		t.Errorf("overload %v, worst %v, busy %v; want 7/6, 5/2 and 2/3", overload, worst, busy)
	}
}

func TestRunWritesAPageAndAPlot(t *testing.T) {
	directory := t.TempDir()
	if err := run(directory, small); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(directory, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2,000 clients", "| 1 | 11.00 | 1.", "| 20 | ", "load.svg"} {
		if !strings.Contains(string(written), want) {
			t.Errorf("the page has no %q:\n%s", want, written)
		}
	}
	image, err := os.Open(filepath.Join(directory, "load.svg"))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	lines := 0
	for d := xml.NewDecoder(image); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the plot is not XML: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "polyline" {
			lines++
		}
	}
	if lines != 3 {
		t.Errorf("the plot has %d lines, want 3", lines)
	}
	if err := run(filepath.Join(directory, "missing"), small); err == nil {
		t.Error("a directory that does not exist is no error")
	}
}
