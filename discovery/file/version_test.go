package file

import (
	"strings"
	"testing"
)

func TestAnswersHaveVersions(t *testing.T) {
	path := newPath(t)
	write(t, path, onePort(1))
	one := receive(t, startSource(t, path).answers).Version
	replace(t, path, strings.Replace(onePort(2), "lb_endpoints", "lbEndpoints", 1)) // both forms are accepted
	other := startSource(t, path)
	two := receive(t, other.answers).Version
	for two == one { // the first answer may be of the content before the edit
		two = receive(t, other.answers).Version
	}
	if len(one) != 8 || len(two) != 8 {
		t.Errorf("two contents have the versions %q and %q, want different ones of 8 characters", one, two)
	}
}
