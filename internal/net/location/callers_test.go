package location

import (
	"fmt"
	"strings"
	"testing"
)

func TestCallers(t *testing.T) {
	for text, want := range map[string]string{
		"a:2,b:1":         "map[a:2 b:1]",
		"a:0.5,b:0":       "map[a:0.5 b:0]",
		"eu:west:3":       "map[eu:west:3]",
		"":                `"" given, want zones with their numbers of callers, such as a:2,b:1`,
		"a":               `"a" given, want zones with their numbers of callers, such as a:2,b:1`,
		":1":              `":1" given, want zones with their numbers of callers, such as a:2,b:1`,
		"a:1,":            `"" given, want zones with their numbers of callers, such as a:2,b:1`,
		"a:x":             `zone "a" has "x" callers, want a number from 0 to a billion`,
		"a:-1":            `zone "a" has "-1" callers, want a number from 0 to a billion`,
		"a:NaN":           `zone "a" has "NaN" callers, want a number from 0 to a billion`,
		"a:Inf":           `zone "a" has "Inf" callers, want a number from 0 to a billion`,
		"a:1,a:2":         `zone "a" is given twice`,
		" a:1":            `zone " a" given, want a name of at most 256 bytes, without control characters and without spaces around it`,
		"a:0,b:0":         `"a:0,b:0" given, but no zone has callers; want at least one`,
		manyZones(1001):   "more than 1000 zones are given",
		"a:1e9,b:1000001": "map[a:1e+09 b:1.000001e+06]",
	} {
		callers, err := Callers(text)
		got := fmt.Sprint(callers)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.40q: %s, want %s", text, got, want)
		}
	}
}

func manyZones(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("z%d:1", i))
	}
	return strings.Join(list, ",")
}
