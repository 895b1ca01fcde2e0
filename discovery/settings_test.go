package discovery_test

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/topology"
)

// A tool without a channel reads the parameters of a target, with the same mistakes.
func TestParseSettings(t *testing.T) {
	for query, want := range map[string]topology.Settings{
		"": {},
		"minReady=0.6&failbackDelay=5s&outlierDetection=true": {MinReady: 0.6, FailbackDelay: 5 * time.Second, OutlierDetection: true},
	} {
		given, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := discovery.ParseSettings(given); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", query, got, err, want)
		}
	}
	for query, want := range map[string]string{
		"minReady=2":                     "minReady: 2 given, want a number from 0 to 1",
		"minReady=":                      "not one minReady given, but none or several",
		"slowStart=soon":                 `slowStart: "soon" given, want a duration such as 10s`,
		"authority=a":                    `unknown parameter "authority", want one of failbackDelay, `,
		"x=1":                            `unknown parameter "x", want one of failbackDelay, `,
		"pickFirst=1&outlierDetection=1": "outlierDetection: true given together with pickFirst",
	} {
		given, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := discovery.ParseSettings(given); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}
