package understudy_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	estats "google.golang.org/grpc/experimental/stats"
)

var metricKinds = map[estats.MetricType]string{
	estats.MetricTypeIntCount: "counter", estats.MetricTypeFloatCount: "counter", estats.MetricTypeIntHisto: "histogram",
	estats.MetricTypeFloatHisto: "histogram", estats.MetricTypeIntGauge: "gauge", estats.MetricTypeIntUpDownCount: "up-down counter",
	estats.MetricTypeIntAsyncGauge: "gauge",
}

func quoteLabels(labels []string) string {
	if len(labels) == 0 {
		return "none"
	}
	return "`" + strings.Join(labels, "`, `") + "`"
}

func TestDocumentListsAllMetrics(t *testing.T) {
	document, err := os.ReadFile("docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for name := range estats.DefaultMetrics.Metrics() {
		if !strings.HasPrefix(name, "understudy.") {
			continue
		}
		d := estats.DescriptorForMetric(name)
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |", name, metricKinds[d.Type], d.Unit, quoteLabels(d.Labels), quoteLabels(d.OptionalLabels), d.Description))
	}
	for line := range strings.Lines(string(document)) {
		if strings.HasPrefix(line, "| `understudy.") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 4 || !slices.Equal(got, want) {
		t.Errorf("docs/metrics.md has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
