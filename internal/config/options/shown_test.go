package options

import (
	"testing"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// HideText must hide secrets in a target, but not the values of this module's parameters.
func TestHideTextShowsParameters(t *testing.T) {
	for _, name := range Names(Channel) {
		if target := "x:///a?" + name + "=near"; printable.HideText(target) != target {
			t.Errorf("%s is shown as %s", target, printable.HideText(target))
		}
	}
}
