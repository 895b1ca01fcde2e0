package lbconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.CaptureWarnings()

func forgetLogged() {
	loggedFields.Lock()
	defer loggedFields.Unlock()
	clear(loggedFields.fields)
}

// An unknown field must be logged once, together with the known ones, even if the configuration is
// parsed again, or has the same mistake in several localities.
func TestUnknownFieldsAreLoggedOnce(t *testing.T) {
	forgetLogged()
	for range 3 {
		logged.Take()
		raw := `{"failoverTimout": "1s", "priorities": ["a", "b"],
			"children": {"a": {"config": ` + stub + `, "ignoreReresolution": true}, "b": {"config": ` + stub + `, "ignoreReresolution": true}}}`
		for range 2 {
			if _, err := parsers["priority"]([]byte(raw)); err != nil {
				t.Fatal(err)
			}
		}
		got := logged.Take()
		for _, want := range []string{
			"[understudy] priority: failoverTimout: unknown field, ignored; the known fields are children, priorities, sourcePriorities, failoverTimeout, childRetention, removedChildRetention, warmStandby, overflow, ramp, perPriority (logged once)\n",
			`[understudy] priority: children["a"].ignoreReresolution: unknown field, ignored; the known fields are config, ignoreReresolutionRequests (logged once)` + "\n",
		} {
			if !strings.Contains(got, want) || strings.Count(got, "\n") != 2 || strings.Count(got, "WARNING") != 2 {
				t.Errorf("logged\n%swant the line\n%s", got, want)
			}
		}
		forgetLogged()
	}
	parsers["priority"]([]byte(`{"failoverTimout": "1s"}`))
	logged.Take()
	if parsers["priority"]([]byte(`{"failoverTimout": "2s"}`)); logged.Take() != "" {
		t.Error("logged again")
	}
	if parsers["drop"]([]byte(full["drop"])); logged.Take() != "" {
		t.Error("a configuration with only known fields is logged")
	}
}

func TestLoggedUnknownFieldsAreLimited(t *testing.T) {
	forgetLogged()
	defer forgetLogged()
	logged.Take()
	const most = 1000
	for i := range 2 * most {
		parsers["pick_first"](fmt.Appendf(nil, `{"field%d\n%s": 1}`, i, strings.Repeat("x", 1000)))
	}
	got := logged.Take()
	if n := strings.Count(got, "\n"); n != most || len(loggedFields.fields) != most {
		t.Errorf("logged %d lines and recorded %d fields, want %d", n, len(loggedFields.fields), most)
	}
	if len(got) > most*400 {
		t.Errorf("logged %d bytes", len(got))
	}
}
