package lbconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

var logged = testlog.KeepWarnings()

// forget makes the process forget what it has logged.
func forget() {
	told.Lock()
	defer told.Unlock()
	clear(told.fields)
}

// A field that is not known is ignored, and logged with what there is: once, although a
// configuration is parsed again and again, and other localities have the same mistake.
func TestUnknownFieldsAreLoggedOnce(t *testing.T) {
	forget()
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
			"[understudy] priority: failoverTimout: unknown field, ignored; there are children, priorities, sourcePriorities, failoverTimeout, childRetention, removedChildRetention, failbackDelay, minReady, minReadyRecovery, warmStandby, fastFailover, failbackJitter, maxFailbackDelay (said once)\n",
			`[understudy] priority: children["a"].ignoreReresolution: unknown field, ignored; there are config, ignoreReresolutionRequests (said once)` + "\n",
		} {
			if !strings.Contains(got, want) || strings.Count(got, "\n") != 2 || strings.Count(got, "WARNING") != 2 {
				t.Errorf("logged\n%swant the line\n%s", got, want)
			}
		}
		forget()
	}
	parsers["priority"]([]byte(`{"failoverTimout": "1s"}`))
	logged.Take()
	if parsers["priority"]([]byte(`{"failoverTimout": "2s"}`)); logged.Take() != "" {
		t.Error("logged again")
	}
	if parsers["drop"]([]byte(full["drop"])); logged.Take() != "" {
		t.Error("a configuration with nothing but known fields is logged")
	}
}

// Whoever writes configurations cannot fill the memory of the process, nor its log.
func TestUnknownFieldsAreBounded(t *testing.T) {
	forget()
	defer forget()
	logged.Take()
	for i := range 2 * mostTold {
		parsers["pick_first"](fmt.Appendf(nil, `{"field%d\n%s": 1}`, i, strings.Repeat("x", 1000)))
	}
	got := logged.Take()
	if n := strings.Count(got, "\n"); n != mostTold || len(told.fields) != mostTold {
		t.Errorf("logged %d lines and remembers %d fields, want %d", n, len(told.fields), mostTold)
	}
	if len(got) > mostTold*400 {
		t.Errorf("logged %d bytes", len(got))
	}
}
