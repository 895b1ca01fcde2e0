package messages_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// An error must list at most 20 problems and count the others. A text must be truncated to about
// 500 bytes.
func TestManyProblems(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "p[0]: bad", 20: "p[19]: bad", 21: "; and 1 more", 25: "; and 5 more"} {
		var e messages.Invalid
		for i := range n {
			e.Add(fmt.Sprintf("p[%d]", i), "bad")
		}
		var merged messages.Invalid
		merged.Merge("", e.Err())
		err := merged.Err()
		if n == 0 && err != nil || n > 0 && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d problems: %v, want … %s", n, err, want)
		}
		if invalid, ok := errors.AsType[*messages.Invalid](err); ok != (n > 0) || ok && !invalid.Refused() {
			t.Errorf("%d problems: an error of type %T, which must count as refused", n, err)
		}
	}
	var e messages.Invalid
	if e.Add("", "%s", strings.Repeat("x", 1000)); e.Problems[0].Text != strings.Repeat("x", 500)+"… (1000 bytes)" {
		t.Errorf("a text is %s, want 500 bytes of it", e.Problems[0].Text)
	}
}
