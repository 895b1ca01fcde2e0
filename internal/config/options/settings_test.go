package options_test

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/config/options"
)

func TestParseSettings(t *testing.T) {
	for query, want := range map[string]options.Settings{
		"":                           {},
		"prefer=hints&zone=a&node=n": {Prefer: "hints", Zone: "a", Node: "n"},
		"overflow=true&ramp=5s&outlierDetection=true": {Overflow: true, Ramp: 5 * time.Second, OutlierDetection: options.On},
	} {
		given, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := options.ParseSettings(given); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", query, got, err, want)
		}
	}
	for query, want := range map[string]string{
		"ramp=2h":        "ramp: 2h0m0s given, want a duration such as 10s, from 1s to 1h0m0s",
		"ramp=":          "parameter ramp has no value, or several; want exactly one",
		"slowStart=soon": `slowStart: "soon" given, want a duration such as 10s`,
		"authority=a":    `unknown parameter "authority", want one of endpointPolicy, failoverTimeout, `,
		"prefer=near":    `prefer: "near" given, want one of zone, hints, none`,
		"zone=a%0a":      `zone: "a\n" given, want a name of at most 256 bytes, without`,
		"subset=0":       "subset: 0 given, want 1 and more",
		"x=1":            `unknown parameter "x", want one of endpointPolicy, failoverTimeout, `,
		"endpointPolicy=pick_first&outlierDetection=1": "outlierDetection: given together with endpointPolicy pick_first, want one of them",
	} {
		given, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := options.ParseSettings(given); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}
