package lbconfig

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var documentedConfigs = map[string]any{
	"priority":           &Priority{},
	"weightedtarget":     &WeightedTarget{},
	"weightedroundrobin": &WeightedRoundRobin{},
	"drop":               &Drop{},
	"pickfirst":          &PickFirst{},
	"outlierdetection":   &OutlierDetection{},
}

func packageComment(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob("../../../policy/" + dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	comment := ""
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f.Name.Name, "_test") {
			comment += f.Doc.Text()
		}
	}
	return comment
}

var columns = regexp.MustCompile(` {2,}`)

func TestPackagesDocumentTheirConfigurations(t *testing.T) {
	for dir, config := range documentedConfigs {
		rows := map[string][]string{}
		for line := range strings.Lines(packageComment(t, dir)) {
			if row, ok := strings.CutPrefix(line, "\t"); ok {
				cells := columns.Split(strings.TrimSpace(row), -1)
				rows[cells[0]] = cells
			}
		}
		if head := rows["field"]; !reflect.DeepEqual(head, []string{"field", "type", "default", "range", "from"}) {
			t.Errorf("%s: the head of the table is %q, want field, type, default, range, from", dir, head)
		}
		checkDocumented(t, dir, "", reflect.ValueOf(config).Elem(), rows)
	}
}

func checkDocumented(t *testing.T, dir, path string, v reflect.Value, rows map[string][]string) {
	t.Helper()
	setDefaults(v)
	for _, f := range fields(v.Type()) {
		path, v := join(path, f.name), v.Field(f.index)
		row := rows[path]
		if len(row) != 5 {
			t.Errorf("%s: the row of %s is %q, want five cells", dir, path, row)
			continue
		}
		if given := row[2]; given == "required" || given == "none" {
			if !v.IsZero() {
				t.Errorf("%s: %s has the default %v, documented is %s", dir, path, v, given)
			}
		} else {
			want := reflect.New(v.Type())
			if err := json.Unmarshal([]byte(given), want.Interface()); err != nil || !reflect.DeepEqual(v.Interface(), want.Elem().Interface()) {
				t.Errorf("%s: %s has the default %v, documented is %s, %v", dir, path, v, given, err)
			}
		}
		switch inner := v.Type(); inner.Kind() {
		case reflect.Map:
			checkDocumented(t, dir, path+"[name]", reflect.New(inner.Elem()).Elem(), rows)
		case reflect.Slice:
			if inner.Elem().Kind() == reflect.Struct {
				checkDocumented(t, dir, path+"[i]", reflect.New(inner.Elem()).Elem(), rows)
			}
		case reflect.Pointer:
			checkDocumented(t, dir, path, reflect.New(inner.Elem()).Elem(), rows)
		}
	}
}
