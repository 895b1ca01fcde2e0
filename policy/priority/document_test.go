package priority

import (
	"testing"

	"github.com/understudy-lb/understudy/internal/testing/sentences"
)

func TestDocumentNamesExistingTests(t *testing.T) {
	sentences.Document{
		Path:      "../../docs/a56.md",
		Begin:     "## Additions to A56",
		Scenarios: "../../internal/core/priority/testdata",
		Spec:      "a56",
		Tests:     []string{"*_test.go", "../../internal/core/priority/*_test.go", "../../internal/config/lbconfig/*_test.go", "../../internal/lb/hierarchy/*_test.go", "../../internal/channel/*_test.go", "../../internal/arch/*_test.go", "../../policy/weightedtarget/*_test.go"},
		Rows:      20,
		Quoted:    48,
	}.Check(t)
}
