package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// sampleRecords returns three runs of the first two faults. In these runs, round_robin loses no
// calls, and each other client loses 10, 20 and 30 calls.
func sampleRecords() (all []record) {
	for run := 1; run <= 3; run++ {
		for _, f := range faults[:2] {
			for _, c := range contestants {
				r := record{f.name, c.name, run, result{first: time.Duration(run) * time.Second, lost: 10 * run, calls: 3000, longest: time.Second, changes: 1, connections: 7}}
				if c.name == "round_robin" {
					r.lost = 0
				}
				all = append(all, r)
			}
			all = append(all, record{f.name, control.name, run, result{longest: 12 * time.Millisecond}})
		}
	}
	return append(all, record{fault: faults[0].name, contestant: control.name})
}

func TestSaveAndLoad(t *testing.T) {
	all := sampleRecords()
	all[0].first = never
	name := filepath.Join(t.TempDir(), "league.csv")
	if got, err := load(name); got != nil || err != nil {
		t.Errorf("a file that does not exist: %v, %v", got, err)
	}
	if err := save(name, all); err != nil {
		t.Fatal(err)
	}
	if got, err := load(name); err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("loaded %v, %v; want %v", got, err, all)
	}
	os.WriteFile(name, []byte(strings.Join(header, ",")+"\nkilled,pick_first,1,0,0,0,0,0,many\n"), 0o600)
	if _, err := load(name); err == nil || !strings.Contains(err.Error(), "row 2") {
		t.Errorf("a broken file: %v", err)
	}
}

func TestPage(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir, sampleRecords()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "league.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| killed             |      20 / 30 |         20 / 30 |", // the median and the worst run
		"20 / 30 | `round_robin` ",                                // the client that is better
		"met 0 to 3 times,",
		"(1 times)",
		"(league/lost.svg)",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	width := 0
	for line := range strings.Lines(string(text)) {
		switch {
		case !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "!"):
			width = 0
			if len([]rune(line)) > 121 {
				t.Errorf("a line has %d characters: %s", len([]rune(line)), line)
			}
		case width > 0 && len([]rune(line)) != width:
			t.Errorf("a row of a table is not aligned: %s", line)
		default:
			width = len([]rune(line))
		}
	}
}
