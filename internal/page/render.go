package page

import (
	"embed"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

//go:embed page.html style.css script.js
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"ago":     func(t *time.Time) string { return printable.Duration(max(0, time.Since(*t))) },
	"clock":   func(t time.Time) string { return t.Format("15:04:05.000") },
	"stamp":   func(t time.Time) string { return t.Format(time.RFC3339Nano) },
	"percent": printable.Percent,
	"bar":     func(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) },
	"words":   func(state string) string { return strings.ReplaceAll(state, "_", " ") },
	"branches": func(p *Policy) bool {
		return slices.ContainsFunc(p.Children, func(c *Child) bool { return c.Below != nil })
	},
	"name": func(c *Child) string {
		if c.title() == "/" { // all of the locality's fields are empty
			return "no locality"
		}
		return c.title()
	},
	"opened":  func(c *Child) bool { return c.open },
	"facts":   childDetails,
	"stale":   func(c *Channel) []string { return c.Stale(time.Now()) },
	"trend":   trend,
	"wrong":   childProblems,
	"reasons": func(c *Channel) []string { return c.Reasons() },
	"folded":  folded,
}).ParseFS(files, "page.html"))

func childDetails(c *Child) (details []string) {
	if c.Since != nil {
		details = append(details, printable.Duration(max(0, time.Since(*c.Since))))
	}
	if c.Weight > 0 {
		details = append(details, fmt.Sprintf("weight %d", c.Weight))
	}
	if c.counts.endpoints > 0 {
		details = append(details, fmt.Sprintf("%d of %d endpoints ready", c.counts.ready, c.counts.endpoints))
	}
	if c.Scheduled > 0 {
		details = append(details, fmt.Sprintf("%d calls scheduled", c.Scheduled))
	}
	return details
}

func trend(c *Child) string {
	if !slices.ContainsFunc(c.lowest, func(share float64) bool { return share < 1 }) {
		return ""
	}
	var points strings.Builder
	for x, share := range c.lowest {
		fmt.Fprintf(&points, "%d,%.1f ", x, 20*(1-share))
	}
	return points.String()
}

func childProblems(c *Child) (problems []string) {
	if c.Ejected != "" {
		problems = append(problems, c.Ejected)
	}
	switch {
	case c.Error == "" || c.Ejected != "" && strings.Contains(c.Error, "is ejected"):
	case c.State == connectivity.TransientFailure.String():
		problem := c.Error
		if c.NextAttempt != nil {
			problem += "; next attempt within " + printable.Duration(max(0, time.Until(*c.NextAttempt)))
		}
		problems = append(problems, problem)
	case c.ErrorAt != nil:
		problems = append(problems, "last error, "+printable.Duration(max(0, time.Since(*c.ErrorAt)))+" ago: "+c.Error)
	default:
		problems = append(problems, "last error: "+c.Error)
	}
	if c.Calls != nil && c.Recent.Failing() {
		problems = append(problems, c.Recent.failures())
	}
	return problems
}

func folded(counts map[string]int) []string {
	var states []string
	for state := range counts {
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for i, state := range states {
		states[i] = fmt.Sprintf("%d %s", counts[state], strings.ReplaceAll(state, "_", " "))
	}
	return states
}
