package explain

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryFieldIsDocumented(t *testing.T) {
	document, err := os.ReadFile("../../../../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(document), "## JSON")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(table, -1) {
		documented = append(documented, row[1])
	}
	if fields := fieldsOf(reflect.TypeFor[Result](), ""); !slices.Equal(documented, fields) {
		t.Errorf("docs/explain.md has the fields %q\nthe JSON has %q", documented, fields)
	}
}

func fieldsOf(s reflect.Type, prefix string) []string {
	var fields []string
	for i := range s.NumField() {
		name, _, _ := strings.Cut(s.Field(i).Tag.Get("json"), ",")
		if !s.Field(i).IsExported() || name == "-" {
			continue
		}
		fields = append(fields, prefix+name)
		if inner := s.Field(i).Type; inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			fields = append(fields, fieldsOf(inner.Elem(), prefix+name+"[].")...)
		}
	}
	return fields
}
