package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

type series struct {
	name   string
	class  int
	values []int
}

// A scale maps values from 0 to most to positions from 0 to 1. grid returns where to draw lines.
type scale struct {
	position func(n, most int) float64
	grid     func(most int) []int
}

var linear = scale{
	position: func(n, most int) float64 { return float64(n) / float64(most) },
	grid: func(most int) (lines []int) {
		step := int(math.Pow(10, math.Floor(math.Log10(float64(most)))))
		if most/step < 3 {
			step = max(1, step/2)
		}
		for n := 0; n <= most; n += step {
			lines = append(lines, n)
		}
		return lines
	},
}

// logarithmic is for plots with both small and large values. There's no logarithm of 0, so we draw
// that a little below 1.
var logarithmic = scale{
	position: func(n, most int) float64 {
		const zero = 0.08
		if n == 0 {
			return 0
		}
		return zero + (1-zero)*math.Log10(float64(n))/math.Log10(float64(max(most, 10)))
	},
	grid: func(most int) []int {
		lines := []int{0}
		for n := 1; n <= most; n *= 10 {
			lines = append(lines, n)
		}
		return lines
	},
}

func timePlot(title string, s scale, lines []series) string {
	const top = 92
	most := 1
	for _, l := range lines {
		most = max(most, slices.Max(l.values))
	}
	seconds := phases[len(phases)-1].from
	x := func(second int) float64 { return left + float64(second)/float64(seconds)*(right-left) }
	y := func(n int) float64 { return bottom - s.position(n, most)*(bottom-top) }
	var b strings.Builder
	begin(&b)
	text(&b, left, 26, "start", "ink", title)
	for _, n := range s.grid(most) {
		fmt.Fprintf(&b, "<path d=\"M%d %.1fH%d\" class=\"grid\"/>\n", left, y(n), right)
		text(&b, left-10, y(n)+4, "end", "ink", thousands(n))
	}
	for i, p := range phases[:len(phases)-1] {
		fmt.Fprintf(&b, "<path d=\"M%.1f %dV%d\" class=\"mark\"/>\n", x(p.from), top-8, bottom)
		text(&b, x(p.from), float64(top-14-18*(i%2)), "start", "ink", p.name)
	}
	for minute := range seconds/60 + 1 {
		text(&b, x(minute*60), bottom+20, "middle", "ink", fmt.Sprint(minute))
	}
	text(&b, (left+right)/2, bottom+42, "middle", "ink", "minutes")
	for _, l := range lines {
		polyline(&b, l.class, l.values, x, y)
	}
	below := float64(top) - 4
	for _, l := range lines {
		if l.name != "" {
			below += 20
			text(&b, right+8, below, "start", fmt.Sprintf("f%d", l.class), l.name)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func polyline(b *strings.Builder, class int, values []int, x func(int) float64, y func(int) float64) {
	var points strings.Builder
	for second, n := range values {
		if second > 0 && second < len(values)-1 && values[second-1] == n && values[second+1] == n {
			continue
		}
		fmt.Fprintf(&points, "%.1f,%.1f ", x(second), y(n))
	}
	fmt.Fprintf(b, "<polyline points=%q class=\"c%d thin\"/>\n", strings.TrimSpace(points.String()), class)
}
