package understudy_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type dashboard struct {
	Templating struct {
		List []struct{ Definition string }
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

type metric struct {
	name   string
	labels []string
}

func documentedMetrics(t *testing.T) map[string]metric {
	t.Helper()
	document, err := os.ReadFile("docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	underscores := strings.NewReplacer(".", "_", "`", "", " ", "")
	all := make(map[string]metric)
	for line := range strings.Lines(string(document)) {
		if !strings.HasPrefix(line, "| `understudy.") {
			continue
		}
		cells := strings.Split(line, "|")
		name := underscores.Replace(cells[1])
		if strings.TrimSpace(cells[2]) == "counter" {
			name += "_total"
		}
		all[name] = metric{name, strings.Split(underscores.Replace(cells[4]+","+cells[5]), ",")}
	}
	return all
}

var metricName = regexp.MustCompile(`(understudy|grpc)_\w+`)

func checkQuery(t *testing.T, where, query, legend string, known map[string]metric) string {
	t.Helper()
	var found metric
	for _, name := range metricName.FindAllString(query, -1) {
		if m, ok := known[name]; ok && found.name == "" {
			found = m
		}
	}
	if found.name == "" {
		t.Errorf("%s: %s queries no metric in docs/metrics.md", where, query)
		return ""
	}
	for _, name := range metricName.FindAllString(query+" "+legend, -1) {
		if name != found.name && !slices.Contains(found.labels, name) {
			t.Errorf("%s: %s uses %s, which is not a label of %s", where, query, name, found.name)
		}
	}
	return found.name
}

// The dashboard queries only documented metrics and labels. It shows counters as rates, and has a
// panel for each important metric.
func TestDashboardQueriesDocumentedMetrics(t *testing.T) {
	data, err := os.ReadFile("docs/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	known := documentedMetrics(t)
	queried := make(map[string]bool)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			name := checkQuery(t, p.Title, target.Expr, target.LegendFormat, known)
			queried[name] = true
			isRate := strings.Contains(target.Expr, "rate(") || strings.Contains(target.Expr, "increase(")
			if isRate != strings.HasSuffix(name, "_total") {
				t.Errorf("%s: %s: want rate or increase for counters, and only for counters", p.Title, target.Expr)
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Definition != "" {
			checkQuery(t, "a variable", v.Definition, "", known)
		}
	}
	for _, want := range []string{
		"understudy_priority_in_use", "understudy_share", "understudy_shed_total", "understudy_priority_failovers_total", "understudy_endpoints", "understudy_picks_total",
		"understudy_outlier_detection_ejections_enforced_total", "understudy_source_updates_total", "understudy_drop_dropped_total", "understudy_eds_connected",
	} {
		if !queried[want] {
			t.Errorf("no panel shows %s; the panels show %v", want, slices.Sorted(maps.Keys(queried)))
		}
	}
}
