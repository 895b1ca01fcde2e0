package understudy_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/config/options"
)

func TestDocumentListsRecommendedOptions(t *testing.T) {
	page, err := os.ReadFile("docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| field | `Recommended()` |")
	table, _, _ = strings.Cut(table, "\n\n")
	got := make(map[string]string)
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.Contains(cells[1], "`") {
			got[strings.Trim(cells[1], " `")] = strings.Trim(cells[2], " `")
		}
	}
	want := make(map[string]string)
	fieldsOf("", reflect.ValueOf(understudy.Recommended()), want)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("docs/options.md has %q for %s, want %s", got[name], name, value)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("docs/options.md has %s, which Recommended does not set", name)
	}
}

func fieldsOf(prefix string, v reflect.Value, all map[string]string) {
	for i := range v.NumField() {
		f, name := v.Field(i), prefix+v.Type().Field(i).Name
		switch {
		case f.IsZero():
		case f.Kind() == reflect.Struct:
			fieldsOf(name+".", f, all)
		case f.Type() == reflect.TypeFor[understudy.OutlierDetection]():
			all[name] = map[understudy.OutlierDetection]string{understudy.On: "On", understudy.Off: "Off"}[f.Interface().(understudy.OutlierDetection)]
		default:
			all[name] = fmt.Sprint(f.Interface())
		}
	}
}

// The recommended target parameters in docs/options.md are those that Recommended sets. refresh is
// missing, because it applies only to names.
func TestDocumentListsRecommendedParameters(t *testing.T) {
	page, err := os.ReadFile("docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	recommended := make(map[string]string)
	fieldsOf("", reflect.ValueOf(understudy.Recommended()), recommended)
	var want []string
	for _, o := range options.Table() {
		if value := recommended[options.ByField(o.Name)]; value != "" && o.Place != options.FieldOnly && o.Name != "refresh" {
			want = append(want, o.Name+"="+strings.Replace(value, "On", "true", 1))
		}
	}
	_, query, _ := strings.Cut(string(page), "\n    ?")
	query, _, _ = strings.Cut(query, "\n")
	got := strings.Split(query, "&")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/options.md recommends ?%s, want %s", query, strings.Join(want, "&"))
	}
}
