package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	width, height            = 760, 420
	left, right, top, bottom = 70, 590, 50, 370
)

// style has colors that work for color-blind readers on light and dark pages. c0 is the first line
// and f0 its label.
const style = `<style>
.back{fill:#fff}.ink{fill:#222}.grid{stroke:#ddd}.mark{stroke:#aaa;stroke-dasharray:3 3}polyline{fill:none;stroke-width:2}.thin{stroke-width:1.2}
.c0{stroke:#d55e00}.c1{stroke:#0072b2}.c2{stroke:#777}.f0{fill:#d55e00}.f1{fill:#0072b2}.f2{fill:#666}
@media (prefers-color-scheme:dark){.back{fill:#0d1117}.ink{fill:#d6dde5}.grid{stroke:#2b3138}.mark{stroke:#5b636d}
.c0{stroke:#ff9248}.c1{stroke:#5cb8ff}.c2{stroke:#a3abb5}.f0{fill:#ff9248}.f1{fill:#5cb8ff}.f2{fill:#a3abb5}}
</style>
`

func begin(b *strings.Builder) {
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n", width, height, width, height)
	b.WriteString(style)
	fmt.Fprintf(b, "<rect width=\"%d\" height=\"%d\" class=\"back\"/>\n", width, height)
}

type axes struct {
	calls int
	most  float64
}

func (a axes) x(calls int) float64 {
	return left + float64(calls-1)/float64(max(a.calls-1, 1))*(right-left)
}

func (a axes) y(overload float64) float64 {
	return bottom - math.Log10(overload)/math.Log10(a.most)*(bottom-top)
}

func plot(f fleet, results []result) string {
	a := axes{calls: f.calls, most: 10}
	for _, r := range results {
		for _, o := range r.overload {
			a.most = max(a.most, math.Pow(10, math.Ceil(math.Log10(o))))
		}
	}
	var b strings.Builder
	begin(&b)
	text(&b, left, top-24, "start", "ink", "the largest load, as a multiple of its fair share")
	grid(&b, a)
	for i, r := range results {
		line(&b, a, r, i)
	}
	labels(&b, a, results)
	b.WriteString("</svg>\n")
	return b.String()
}

func grid(b *strings.Builder, a axes) {
	for o := 1.0; o <= a.most; o *= 10 {
		fmt.Fprintf(b, "<path d=\"M%d %.1fH%d\" class=\"grid\"/>\n", left, a.y(o), right)
		text(b, left-10, a.y(o)+4, "end", "ink", fmt.Sprintf("%.0f×", o))
	}
	for _, calls := range tableRows {
		if calls <= a.calls {
			text(b, a.x(calls), bottom+22, "middle", "ink", fmt.Sprint(calls))
		}
	}
	text(b, (left+right)/2, bottom+42, "middle", "ink", "calls that each client has made")
}

func line(b *strings.Builder, a axes, r result, class int) {
	var points strings.Builder
	for k, o := range r.overload {
		fmt.Fprintf(&points, "%.1f,%.1f ", a.x(k+1), a.y(o))
	}
	fmt.Fprintf(b, "<polyline points=%q class=\"c%d\"/>\n", strings.TrimSpace(points.String()), class)
}

// The labels are at the right ends of the lines. We start with the lowest one, and move labels up
// if they'd overlap.
func labels(b *strings.Builder, a axes, results []result) {
	const apart = 16
	end := func(i int) float64 { return results[i].overload[len(results[i].overload)-1] }
	order := make([]int, len(results))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(end(i), end(j)) })
	below := math.Inf(1)
	for _, i := range order {
		below = min(a.y(end(i))+4, below-apart)
		text(b, right+8, below, "start", fmt.Sprintf("f%d", i), results[i].name)
	}
}

func text(b *strings.Builder, x, y float64, anchor, class, s string) {
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=%q class=%q>%s</text>\n", x, y, anchor, class, s)
}
