package outlierdetection

import (
	"testing"

	"github.com/understudy-lb/understudy/internal/testing/sentences"
)

func TestDocumentNamesExistingTests(t *testing.T) {
	sentences.Document{
		Path:      "../../docs/a50.md",
		Begin:     "## Where A50 leaves room for interpretation",
		Scenarios: "../../internal/core/outlierdetection/testdata",
		Spec:      "a50",
		Tests: []string{
			"*_test.go", "../../internal/channel/*_test.go", "../../internal/core/outlierdetection/*_test.go", "../../internal/config/lbconfig/*_test.go", "../../internal/channel/topology/*_test.go", "../../discovery/*_test.go",
			"../../discovery/eds/*_test.go", "../../discovery/file/*_test.go", "../../internal/envoy/cds/*_test.go", "../../internal/envoy/messages/*_test.go", "../../internal/e2e/*_test.go",
		},
		Rows:   40,
		Quoted: 25,
	}.Check(t)
}
