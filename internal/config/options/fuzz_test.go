package options_test

import (
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/config/options"
)

// FuzzSettings checks that options given as text either result in valid settings, the same ones
// each time, or in one short error line that names one of the options.
func FuzzSettings(f *testing.F) {
	for _, o := range options.Table() {
		for _, value := range []string{"1", "0", "-1", "true", "10s", "0.6", "zone", "a:2,b:1", "NaN", "1e9", "9999999999999999h", "\x00é"} {
			f.Add(o.Name + "=" + url.QueryEscape(value))
		}
	}
	f.Add("overflow=true&ramp=10s&outlierDetection=true&endpointPolicy=pick_first")
	f.Add("endpointPolicy=pick_first&outlierDetection=1&slowStart=3s&subset=4&zone=" + strings.Repeat("z", 50))
	f.Fuzz(func(t *testing.T, query string) {
		given, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		s, err := options.ParseSettings(given)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || len(err.Error()) > 2000 {
				t.Errorf("error is not a short line: %.3000q", err)
			}
			return
		}
		for _, nameOf := range []func(string) string{options.ByName, options.ByField} {
			if err := options.Check(s, nameOf); err != nil {
				t.Errorf("%s becomes %+v, which is not valid: %v", query, s, err)
			}
		}
		if again, err := options.ParseSettings(given); err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("%s becomes %+v, then %+v, %v", query, s, again, err)
		}
		for name := range given {
			if strings.ContainsAny(name, " \n") {
				t.Errorf("parameter %q is accepted", name)
			}
		}
	})
}
