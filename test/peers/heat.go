package main

import (
	"fmt"
	"math"
	"strings"
)

// Sizes in pixels: of a field, of the faults' names on the left, and of the clients' names at the
// top.
const (
	namesWide, namesHigh = 140, 52
	fieldWide, fieldHigh = 98, 24
)

const style = `<style>
.back{fill:#fff}.ink{fill:#222}.field{fill:#d55e00}
@media (prefers-color-scheme:dark){.back{fill:#0d1117}.ink{fill:#d6dde5}.field{fill:#ff7a1a}}
</style>
`

// heat draws a map with a field for each fault and client, which gets darker with the logarithm of
// the median.
func heat(m measure, figures map[[2]string]figure) string {
	width, height := namesWide+fieldWide*len(contestants)+10, namesHigh+fieldHigh*len(faults)+10
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %[1]d %[2]d\" font-family=\"sans-serif\" font-size=\"12\">\n", width, height)
	b.WriteString(style)
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" class=\"back\"/>\n", width, height)
	text(&b, 10, 18, "start", m.title+" (median)")
	for column, c := range contestants {
		text(&b, center(column), namesHigh-8, "middle", c.name)
	}
	for row, f := range faults {
		y := namesHigh + row*fieldHigh
		text(&b, namesWide-10, y+16, "end", f.name)
		for column, c := range contestants {
			got, known := figures[[2]string{f.name, c.name}]
			if !known {
				continue
			}
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" class=\"field\" fill-opacity=\"%.2f\"/>\n",
				namesWide+column*fieldWide+1, y+1, fieldWide-2, fieldHigh-2, m.darkness(got.median))
			text(&b, center(column), y+16, "middle", m.show(got.median))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func center(column int) int { return namesWide + column*fieldWide + fieldWide/2 }

// darkness returns the opacity, from 0.05 for the lowest value of a measure to 0.75 for the
// highest.
func (m measure) darkness(value float64) float64 {
	share := math.Log(max(value, m.low)/m.low) / math.Log(m.high/m.low)
	return 0.05 + 0.7*min(share, 1)
}

func text(b *strings.Builder, x, y int, anchor, s string) {
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=%q class=\"ink\">%s</text>\n", x, y, anchor, s)
}
