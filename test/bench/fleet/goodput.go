package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed goodput.csv
var goodputs string

// goodput plots how many calls are answered at each load, with a line per client. The first column
// of the table is the load.
func goodput(table string) (string, error) {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	head := strings.Split(lines[0], ",")
	columns := make([][]float64, len(head))
	for i, line := range lines[1:] {
		cells := strings.Split(line, ",")
		if len(cells) != len(head) {
			return "", fmt.Errorf("goodput.csv, line %d: %d columns, want %d", i+2, len(cells), len(head))
		}
		for c, cell := range cells {
			n, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				return "", fmt.Errorf("goodput.csv, line %d: %w", i+2, err)
			}
			columns[c] = append(columns[c], n)
		}
	}
	const capacity, highest = 400, 450
	most := slices.Max(columns[0])
	x := func(load float64) float64 { return left + load/most*(right-left) }
	y := func(answered float64) float64 { return bottom - answered/highest*(bottom-top) }
	var b strings.Builder
	begin(&b)
	text(&b, left, top-24, "start", "ink", "calls a second that are answered; each priority can do 200")
	for n := 0.0; n <= most; n += 100 {
		if n < highest {
			fmt.Fprintf(&b, "<path d=\"M%d %.1fH%d\" class=\"grid\"/>\n", left, y(n), right)
			text(&b, left-10, y(n)+4, "end", "ink", fmt.Sprint(n))
		}
		text(&b, x(n), bottom+22, "middle", "ink", fmt.Sprint(n))
	}
	text(&b, (left+right)/2, bottom+42, "middle", "ink", "calls a second that 30 clients make")
	fmt.Fprintf(&b, "<path d=\"M%.1f %.1fL%.1f %.1fH%d\" class=\"mark\" fill=\"none\"/>\n", x(0), y(0), x(capacity), y(capacity), right)
	text(&b, right+8, y(capacity)-8, "start", "ink", "what they can do")
	for c, name := range head[1:] {
		var points strings.Builder
		for i, answered := range columns[c+1] {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(columns[0][i]), y(answered))
		}
		fmt.Fprintf(&b, "<polyline points=%q class=\"c%d\"/>\n", strings.TrimSpace(points.String()), c)
		text(&b, right+8, []float64{y(capacity) + 14, y(40), y(10)}[c], "start", fmt.Sprintf("f%d", c), name)
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}
