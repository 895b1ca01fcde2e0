package options_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/config/options"
)

func TestDocumentHasTable(t *testing.T) {
	page, err := os.ReadFile("../../../docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range options.Table() {
		row := fmt.Sprintf("| `%s` | `%s` | %s | %s | %s |", o.Name, options.ByField(o.Name), o.Default, o.Range, o.Source)
		if o.Place == options.FieldOnly {
			row = fmt.Sprintf("| `%s` | ", o.Name)
		}
		if !strings.Contains(string(page), "\n"+row) {
			t.Errorf("docs/options.md has no line\n%s", row)
		}
	}
}
