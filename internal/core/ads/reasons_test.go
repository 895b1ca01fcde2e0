package ads

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReasonsAreLimited(t *testing.T) {
	var r reasons
	r.add("c", errors.New(strings.Repeat("x", 497))) // just short enough
	r.add("c", errors.New(strings.Repeat("x", 498)))
	for i := range 99_998 {
		r.add(fmt.Sprintf("c%d", i), errors.New(strings.Repeat("ä", maxReason)))
	}
	text := r.String()
	if !strings.HasSuffix(text, "; and 99980 more") {
		t.Errorf("the number of omitted reasons is missing: …%s", text[len(text)-40:])
	}
	if strings.Count(text, "x…") != 1 {
		t.Error("a reason of 500 bytes is shortened, or one of 501 is not")
	}
	if maxLength := maxReasons*(maxReason+10) + 40; len(text) > maxLength {
		t.Errorf("%d bytes, want at most %d", len(text), maxLength)
	}
	if !utf8.ValidString(text) {
		t.Error("the text is not UTF-8")
	}
}
