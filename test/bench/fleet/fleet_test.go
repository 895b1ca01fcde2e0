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

var small = fleet{clients: 2000, endpoints: 20, maxWeight: 10, calls: 22}

func TestSimulate(t *testing.T) {
	results := small.simulate()
	spec, random, lottery := results[0], results[1], results[2]
	// With spec, all clients make their first call to the same endpoint. Its weight is 10 of 110, so
	// it gets 11 times its fair share.
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
		t.Errorf("22 calls: random start has %v, random picks have %v; want less than random picks", r, l)
	}
}

func TestSummarise(t *testing.T) {
	f := fleet{endpoints: 3, maxWeight: 3}
	overload, worst, busy := f.summarise([]int{5, 0, 7}, 12)
	if math.Abs(overload-7.0/6) > 1e-9 || worst != 2.5 || busy != 2.0/3 {
		t.Errorf("overload %v, worst %v, busy %v; want 7/6, 5/2 and 2/3", overload, worst, busy)
	}
}

func polylines(t *testing.T, path string) (lines int) {
	t.Helper()
	image, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	for d := xml.NewDecoder(image); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatalf("%s is not XML: %v", path, err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "polyline" {
			lines++
		}
	}
}

// The pages and the plots in docs/fleet must match the recordings.
func TestPagesMatchRecordings(t *testing.T) {
	slow, err := parseTails(tailRecord)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"tail.md": slow.page(), "tail.svg": slow.plot("1s")} {
		if got, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "fleet", name)); err != nil || string(got) != want {
			t.Errorf("%s is out of date: run go run ./test/bench/fleet (%v)", name, err)
		}
	}
	if want, err := goodput(goodputs); err != nil {
		t.Error(err)
	} else if got, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "fleet", "goodput.svg")); err != nil || string(got) != want {
		t.Errorf("goodput.svg is out of date: run go run ./test/bench/fleet (%v)", err)
	}
	for _, text := range []string{"load,a\n1\n", "load,a\nx,1\n"} {
		if _, err := goodput(text); err == nil {
			t.Errorf("%q parses as a table", text)
		}
	}
	for _, text := range []string{"a,b\n1\n", "d,p,s,c,f,s,e,x\n", "d,p,s,c,f,s,e,p50\n1s,a,1,2,3,4,5,x\n"} {
		if _, err := parseTails(text); err == nil {
			t.Errorf("%q parses as a table of latencies", text)
		}
	}
}

func TestRunWritesPagesAndPlots(t *testing.T) {
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
	for name, want := range map[string]int{"load.svg": 3, "goodput.svg": 3, "tail.svg": 5} {
		if got := polylines(t, filepath.Join(directory, name)); got != want {
			t.Errorf("%s has %d lines, want %d", name, got, want)
		}
	}
	if err := run(filepath.Join(directory, "missing"), small); err == nil {
		t.Error("want an error for a directory that does not exist")
	}
}
