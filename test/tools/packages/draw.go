package main

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	width   = 960
	letters = 6.9
	line    = 16
	gap     = 34
)

type box struct {
	group
	top, bottom int
	lines       []string
}

func draw(arrows map[int][]int) []byte {
	boxes, height := place()
	var svg bytes.Buffer
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif">
<title>The packages of Understudy: an arrow leads from one to those that it imports</title>
<!-- "make packages" draws this from the imports. -->
<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L10 5L0 10z" fill="#444"/></marker></defs>
<rect width="100%%" height="100%%" fill="#ffffff"/>
`, width, height, width, height)
	for from := range boxes {
		for _, to := range arrows[from] {
			fmt.Fprintf(&svg, `<path d="%s" fill="none" stroke="#444" stroke-width="1.5" marker-end="url(#tip)"/>`+"\n", path(boxes[from], boxes[to]))
		}
	}
	for _, b := range boxes {
		fill := "#eef4fb"
		if b.base {
			fill = "#f2f2f2"
		}
		fmt.Fprintf(&svg, `<rect x="%d" y="%d" width="%d" height="%d" rx="5" fill="%s" stroke="#8aa4c0"/>`+"\n", b.left, b.top, b.right-b.left, b.bottom-b.top, fill)
		fmt.Fprintf(&svg, `<text x="%d" y="%d" font-size="13" font-weight="bold" fill="#1a2a3a">%s</text>`+"\n", b.left+10, b.top+19, b.title)
		for i, text := range b.lines {
			fmt.Fprintf(&svg, `<text x="%d" y="%d" font-size="12" fill="#1a2a3a">%s</text>`+"\n", b.left+10, b.top+19+line*(i+1), text)
		}
	}
	svg.WriteString("</svg>\n")
	return svg.Bytes()
}

func place() (boxes []box, height int) {
	boxes, top := make([]box, len(groups)), 20
	for row := 0; ; row++ {
		bottom := top
		for i, g := range groups {
			if g.row == row {
				lines := wrap(g.packages, int(float64(g.right-g.left-20)/letters))
				bottom = max(bottom, top+28+line*len(lines))
				boxes[i] = box{group: g, top: top, lines: lines}
			}
		}
		if bottom == top {
			return boxes, top - gap + 20
		}
		for i, g := range groups {
			if g.row == row {
				boxes[i].bottom = bottom
			}
		}
		top = bottom + gap
	}
}

func wrap(packages []string, n int) (lines []string) {
	for _, dir := range packages {
		if dir = strings.TrimSuffix(dir, "/..."); dir == "." {
			dir = "understudy"
		}
		if last := len(lines) - 1; last >= 0 && len(lines[last])+2+len(dir) <= n {
			lines[last] += ", " + dir
			continue
		}
		lines = append(lines, dir)
	}
	return lines
}

// path draws an arrow. If the boxes overlap horizontally, it goes straight down. If the second box
// is further right, it starts at the first box's right side. If it's further left, it ends at the
// second box's right side.
func path(from, to box) string {
	fromX, toX := (from.left+from.right)/2, (to.left+to.right)/2
	left, right := max(from.left, to.left), min(from.right, to.right)
	switch {
	case left < right:
		return fmt.Sprintf("M%d %dV%d", (left+right)/2, from.bottom, to.top)
	case from.right < to.left:
		return fmt.Sprintf("M%d %dH%dV%d", from.right, (from.top+from.bottom)/2, toX, to.top)
	}
	return fmt.Sprintf("M%d %dV%dH%d", fromX, from.bottom, (to.top+to.bottom)/2, to.right)
}
