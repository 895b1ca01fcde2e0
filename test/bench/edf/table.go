package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

const (
	firstOurs   = 1
	lastNext    = 2
	ourColumn   = 3
	textbook34  = 4
	robinColumn = 6
	leastColumn = 9 // the next column has the same policy in our tree
)

type table struct {
	parallelRatio, serial, allocs, overRobin, buildTime, buildBytes worst
	overTextbook, overLeast                                         worst
	tail                                                            worst

	rows, busy int // busy rows were measured while other processes used a core
}

func (t *table) header() {
	fmt.Print(`Each cell: ns a pick serial (times the floor) / on all cores (times the floor).
No allocation unless stated. Building is until the first pick, with random starts; the
longest picks are those of edf.Next with random starts on all cores, each with its
clock; they include what the system does meanwhile.

`)
	names := []string{"weights", "endpoints"}
	for _, c := range contestants([]uint32{1, 1}) {
		names = append(names, c.name)
		if c.close != nil {
			c.close()
		}
	}
	names = append(names, "building, an endpoint", "p99.99", "longest")
	fmt.Println("| " + strings.Join(names, " | ") + " |")
	fmt.Println("|" + strings.Repeat(" --- |", len(names)))
}

func (t *table) row(r rowResult) {
	columns := []string{r.weights, fmt.Sprint(r.endpoints)}
	for _, c := range r.cells {
		columns = append(columns, c.String())
	}
	columns = append(columns, fmt.Sprintf("%.0f ns, %.0f B", r.build.ns, r.build.bytes),
		short(r.tail.p9999), short(r.tail.longest))
	fmt.Println("| " + strings.Join(columns, " | ") + " |")
	t.remember(r)
}

func (c cell) String() string {
	s := fmt.Sprintf("%s (%.1f×) / %s (%.1f×)", digits(c.serial), c.serialRatio, digits(c.parallel), c.parallelRatio)
	if c.allocs >= 0.01 {
		s += fmt.Sprintf(", %.2g alloc", c.allocs)
	}
	return s
}

func digits(ns float64) string {
	if ns < 100 {
		return fmt.Sprintf("%.1f", ns)
	}
	return fmt.Sprintf("%.0f", ns)
}

func short(d time.Duration) string {
	if d < time.Microsecond {
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	}
	return fmt.Sprintf("%.1f µs", float64(d.Nanoseconds())/1000)
}

type worst struct {
	value float64
	where string
}

func (w *worst) add(value float64, where string) {
	if w.where == "" || value > w.value {
		w.value, w.where = value, where
	}
}

func (t *table) remember(r rowResult) {
	where := fmt.Sprintf("%s, %d", r.weights, r.endpoints)
	t.rows++
	if f := r.cells[0]; f.parallel < 1.3*f.serial {
		t.busy++
	}
	for _, c := range r.cells[firstOurs : lastNext+1] {
		at := where + ", " + c.name
		t.parallelRatio.add(c.parallelRatio, at)
		t.serial.add(c.serial, at)
		t.allocs.add(c.allocs, at)
		if r.endpoints >= 10_000 {
			old := r.cells[textbook34]
			t.overTextbook.add(max(c.serial/old.serial, c.parallel/old.parallel), at)
		}
	}
	if r.endpoints <= 10_000 {
		t.overRobin.add(r.cells[ourColumn].parallel/r.cells[robinColumn].parallel, where)
	}
	if r.endpoints <= 10_000 {
		t.overLeast.add(r.cells[leastColumn+1].serial-r.cells[leastColumn].serial, where)
	}
	if r.endpoints >= 1000 {
		t.buildTime.add(r.build.ns, where)
		t.buildBytes.add(r.build.bytes, where)
	}
	t.tail.add(float64(r.tail.p9999.Nanoseconds())/1000, where)
}

func (t *table) footer() {
	line := func(target, unit string, w worst) {
		fmt.Printf("- %s: %.2f%s (%s)\n", target, w.value, unit, w.where)
	}
	if t.busy > 0 && runtime.GOMAXPROCS(0) > 1 {
		fmt.Printf("\nIn %d of %d rows the floor was as fast on all cores as on one, so no other core was\n"+
			"free: their ratios on all cores say nothing. Run this on an idle machine.\n", t.busy, t.rows)
	}
	fmt.Println("\nTargets, each with its worst result:")
	line("a pick takes at most 2.0 times the floor on all cores", "", t.parallelRatio)
	line("a pick takes at most 40 ns on one core", " ns", t.serial)
	line("a pick makes 0 allocations", "", t.allocs)
	line("a pick takes at most 0.2 times as long as textbook EDF, from 10,000 endpoints on", "", t.overTextbook)
	line("a pick of the generated tree takes at most 1.0 times as long as grpc-go's round_robin on all cores, up to 10,000 endpoints", "", t.overRobin)
	line("a call with least_request takes at most 15 ns more in the generated tree, up to 10,000 endpoints", " ns", t.overLeast)
	line("building takes at most 100 ns per endpoint, from 1,000 endpoints on", " ns", t.buildTime)
	line("building allocates at most 100 bytes per endpoint, from 1,000 endpoints on", " bytes", t.buildBytes)
	line("p99.99 of picks, without a target", " µs", t.tail)
}
