package rehearse

import (
	"fmt"
	"strings"
)

// colours are for the priorities, highest first. All priorities from the fourth on share one.
var colours = []string{"#2f6db5", "#e0a030", "#6a9a3a", "#8a6ab0"}

// Plot draws an SVG with the calls that each priority answers per second. They're stacked, with the
// lost calls on top. The background is grey while there's a fault.
func (o *Outcome) Plot(title string, w World) string {
	const width, height, left, top = 900, 300, 50, 40
	series := o.Seconds
	most := 1
	for _, second := range series {
		most = max(most, second.Total())
	}
	x := func(i int) float64 { return left + float64(i)*width/float64(len(series)) }
	y := func(calls int) float64 { return top + height - float64(calls)*height/float64(most) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", width+left+20, height+top+40)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n"+`<text x="%d" y="20">%s</text>`+"\n", left, title)
	for _, e := range w.Events {
		from, to := x(int(e.From.Seconds())), x(int(e.To.Seconds()))
		fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#eeeeee"/>`+"\n", from, top, to-from, height)
	}
	area := func(name, colour string, place int, of func(i int) (from, to int)) {
		var above, below strings.Builder
		for i := range series {
			from, to := of(i)
			fmt.Fprintf(&above, "%.1f,%.1f ", x(i), y(to))
			before := below.String()
			below.Reset()
			fmt.Fprintf(&below, "%.1f,%.1f %s", x(i), y(from), before)
		}
		fmt.Fprintf(&b, `<polygon points="%s%s" fill="%s"/>`+"\n", above.String(), below.String(), colour)
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", left+90*place, top+height+22, colour, left+90*place+17, top+height+33, name)
	}
	for p := range w.Priorities {
		area(fmt.Sprintf("p%d", p), colours[min(p, len(colours)-1)], p, func(i int) (from, to int) {
			for q := range p {
				from += series[i].Answered[q]
			}
			return from, from + series[i].Answered[p]
		})
	}
	area("lost", "#c03030", len(w.Priorities), func(i int) (from, to int) {
		return series[i].Total() - series[i].Lost, series[i].Total()
	})
	for _, calls := range []int{0, most / 2, most} {
		fmt.Fprintf(&b, `<text x="%d" y="%.0f" text-anchor="end">%d</text>`+"\n", left-6, y(calls)+4, calls)
	}
	for i := 0; i <= len(series); i += 30 {
		fmt.Fprintf(&b, `<text x="%.0f" y="%d" text-anchor="middle">%d s</text>`+"\n", x(i), top+height+16, i)
	}
	return b.String() + "</svg>\n"
}
