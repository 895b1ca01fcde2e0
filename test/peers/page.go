package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

type measure struct {
	title, intro string
	picture      string // file name without the extension; may be ""
	value        func(result) float64
	show         func(float64) string
	// A figure is only better if it beats the reference's by at least this much, and by a tenth.
	minDifference float64
	// Clients can improve some figures just by giving up. For those, they must also lose no more
	// calls than the reference.
	requiresNoMoreLost bool
	// The values with the lightest and the darkest field in the picture.
	low, high float64
}

func lostCalls(r result) float64 { return float64(r.lost) }

var measures = []measure{
	{title: "Calls lost", picture: "lost", value: lostCalls, show: integer, minDifference: 3, low: 1, high: float64(observationTime / callInterval),
		intro: "In the 30 s after the fault, each client makes about 1,500 calls. This table shows how many of them failed. We also count calls that were in flight when the fault began."},
	{title: "First answer", picture: "first", value: func(r result) float64 { return secondsOf(r.first) }, show: seconds, minDifference: 0.2, low: 0.02, high: observationTime.Seconds(),
		intro: "This is how many seconds it took until any backend answered a call that began after the fault. If a client spreads its calls over both priorities, it gets an answer at once, but it may still lose half of its calls."},
	{title: "Connections", picture: "connections", value: func(r result) float64 { return float64(r.connections) }, show: integer, minDifference: 3, requiresNoMoreLost: true, low: 1, high: 10_000,
		intro: "We counted the connection attempts in the 30 s after the fault. A client with fewer attempts only counts as better if it doesn't lose more calls."},
}

func secondsOf(d time.Duration) float64 {
	if d == never {
		return math.Inf(1)
	}
	return d.Seconds()
}

func seconds(s float64) string {
	if math.IsInf(s, 1) {
		return "never"
	}
	return fmt.Sprintf("%.2f", s)
}

func integer(n float64) string { return fmt.Sprintf("%.0f", n) }

func write(dir string, all []record) error {
	if len(all) == 0 {
		return nil
	}
	pictures := filepath.Join(dir, "league")
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return err
	}
	for _, m := range measures {
		if m.picture == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(pictures, m.picture+".svg"), []byte(heat(m, summary(all, m.value))), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "league.md"), []byte(page(all)), 0o644)
}

func page(all []record) string {
	var b strings.Builder
	b.WriteString(introduction)
	lost := summary(all, lostCalls)
	for _, m := range measures {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", m.title, wrap(m.intro))
		b.WriteString(aligned(rows(m, summary(all, m.value), lost)))
		if m.picture != "" {
			fmt.Fprintf(&b, "\n![%s, by client and fault](league/%s.svg)\n", m.title, m.picture)
		}
	}
	b.WriteString(reasons + "\n## The clients\n\n" + wrap(clientsText) + "\n\n")
	table := [][]string{{"client", "what it is"}}
	for _, c := range contestants {
		table = append(table, []string{"`" + c.name + "`", c.what})
	}
	b.WriteString(aligned(table))
	b.WriteString("\n## The faults\n\n" + wrap(faultsText) + "\n\n")
	table = [][]string{{"fault", "runs", "what happens to the first priority"}}
	for _, f := range faults {
		table = append(table, []string{f.name, strconv.Itoa(runsOf(f, all)), f.what})
	}
	b.WriteString(aligned(table))
	b.WriteString(leftOut)
	b.WriteString("\n## How it was measured\n\n" + wrap(method(all)) + "\n")
	return b.String()
}

func rows(m measure, figures, lost map[[2]string]figure) [][]string {
	head := []string{"fault"}
	for _, c := range contestants {
		head = append(head, "`"+c.name+"`")
	}
	table := [][]string{append(head, "better than `"+reference+"`")}
	for _, f := range faults {
		row := []string{f.name}
		var better []string
		for _, c := range contestants {
			key := [2]string{f.name, c.name}
			got, known := figures[key]
			switch {
			case !known:
				row = append(row, "not run")
				continue
			}
			row = append(row, cell(m, got))
			if m.isBetter(got.median, figures[[2]string{f.name, reference}].median) && (!m.requiresNoMoreLost || lost[key].median <= lost[[2]string{f.name, reference}].median) {
				better = append(better, "`"+c.name+"`")
			}
		}
		if _, known := figures[[2]string{f.name, reference}]; known {
			row = append(row, cmp.Or(strings.Join(better, ", "), "none"))
		} else {
			row = append(row, "not run")
		}
		table = append(table, row)
	}
	return table
}

func (m measure) isBetter(figure, ours float64) bool {
	return figure <= ours*0.9 && ours-figure >= m.minDifference
}

func cell(m measure, f figure) string {
	if median, worst := m.show(f.median), m.show(f.worst); median != worst {
		return median + " / " + worst
	}
	return m.show(f.median)
}

func aligned(table [][]string) string {
	widths := make([]int, len(table[0]))
	for _, row := range table {
		for i, field := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(field))
		}
	}
	var b strings.Builder
	for n, row := range table {
		for i, field := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(field))
			if isNumber(i, row) {
				field, pad = pad+field, ""
			}
			fmt.Fprintf(&b, "| %s%s ", field, pad)
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i, width := range widths {
			line := strings.Repeat("-", width)
			if isNumber(i, row) {
				line = line[1:] + ":"
			}
			b.WriteString("| " + line + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}

func isNumber(column int, row []string) bool { return column > 0 && column < len(row)-1 }

func wrap(text string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch width := utf8.RuneCountInString(word); {
		case i == 0:
			column = width
		case column+1+width > 120:
			b.WriteString("\n")
			column = width
		default:
			b.WriteString(" ")
			column += 1 + width
		}
		b.WriteString(word)
	}
	return b.String()
}

func runsOf(f fault, all []record) (runs int) {
	for _, r := range all {
		if r.fault == f.name && r.contestant == control.name && r.run > 0 {
			runs++
		}
	}
	return runs
}

func method(all []record) string {
	refused := 0
	var longest time.Duration
	for _, r := range all {
		switch {
		case r.contestant != control.name:
		case r.run == 0:
			refused++
		default:
			longest = max(longest, r.longest)
		}
	}
	var counts []int
	for _, f := range faults {
		counts = append(counts, runsOf(f, all))
	}
	times := fmt.Sprintf("%d times", slices.Max(counts))
	if least := slices.Min(counts); least != slices.Max(counts) {
		times = fmt.Sprintf("%d to %d times", least, slices.Max(counts))
	}
	return fmt.Sprintf(methodText, times, maxControlCall, refused, longest.Milliseconds(), machine(), strings.Join(versions(), ", "))
}

func machine() string {
	return fmt.Sprintf("%s on %s/%s, %d cores%s", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor())
}

// processor returns "" if /proc/cpuinfo has no name.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return " (" + strings.TrimSpace(value) + ")"
		}
	}
	return ""
}

func versions() (all []string) {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return nil
	}
	for _, dep := range info.Deps {
		switch dep.Path {
		case "google.golang.org/grpc", "github.com/GoogleCloudPlatform/grpc-gcp-go/grpcgcp":
			all = append(all, "`"+dep.Path+"` "+dep.Version)
		}
	}
	return all
}
